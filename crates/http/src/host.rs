//! Clients, by the address they connect from.

use std::net::{IpAddr, SocketAddr};

/// The address a request came from; each request has it as an extension.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Returns the address that stands for a client. A network of 64 bits of IPv6 addresses belongs to one host; an IPv4
/// address that came in through a socket for both (`::ffff:a.b.c.d`) is that address, and not one of a network with all
/// the others.
pub fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_a_host() {
        let host = |text: &str| host_of(text.parse().unwrap()).to_string();
        assert_eq!(host("10.1.2.3"), "10.1.2.3");
        assert_eq!(host("::ffff:10.1.2.3"), "10.1.2.3");
        assert_eq!(host("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_ne!(host("2001:db8:1:2::1"), host("2001:db8:1:3::1"));
    }
}

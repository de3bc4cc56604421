//! What a server allows: the flags of `warpsmith-pir serve` for it.

use std::time::Duration;

use clap::Args;
use warpsmith_console::exit::Failure;
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_http::ConnectionLimits;
use warpsmith_rms24::memory;
use warpsmith_rms24::server::Limits;

#[derive(Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitFlags {
    /// Memory of all requests under way, their answers among them: bytes, or with K, M, G or T [default: a quarter of this
    /// machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,

    /// Memory of one request [default: half of --memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    request_memory: Option<u64>,

    /// Memory of the requests of one address; a network of 64 bits counts as one IPv6 address [default: half of --memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    address_memory: Option<u64>,

    /// Queries in one request
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = human::whole::<u32>(1..=65_536))]
    batch: u32,

    /// Connections at once; one more takes the place of one without a request, or is closed
    #[arg(long, value_name = "N", default_value_t = ConnectionLimits::DEFAULT.connections as u32, value_parser = human::whole::<u32>(1..=1_000_000))]
    connections: u32,

    /// Connections of one address at once; likewise
    #[arg(long, value_name = "N", default_value_t = ConnectionLimits::DEFAULT.address_connections as u32, value_parser = human::whole::<u32>(1..=1_000_000))]
    address_connections: u32,

    /// Requests that are worked on at once; others are told to come again [default: 64, of a hint maker 1]
    #[arg(long, value_name = "N", value_parser = human::whole::<u32>(1..=65_536))]
    working: Option<u32>,

    /// Requests for hints of one address that are worked on at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = human::whole::<u32>(1..=65_536))]
    address_hints: u32,

    /// Requests a second from one address, on average
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = parse_rate)]
    rate: f64,

    /// Requests from one address at once
    #[arg(long, value_name = "N", default_value_t = 400.0, value_parser = parse_rate)]
    burst: f64,

    /// Time for the rest of a request to arrive, once its head is there
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = human::parse_duration)]
    request_time: Duration,

    /// Time without a request after which a connection is closed; an answer has as long, and a second for each 16 KiB, to be
    /// taken
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = human::parse_duration)]
    idle: Duration,
}

impl LimitFlags {
    /// What is allowed. Where the system does not give as many open files as connections, there are fewer of those.
    pub fn limits(&self, is_maker: bool, screen: &mut Screen) -> Result<Limits, Failure> {
        let memory = self.memory.unwrap_or(memory::of_machine() / 4);
        if memory > memory::of_machine() {
            return Err(Failure::Usage(format!(
                "--memory {memory} is more than this machine gives a process, {} bytes",
                memory::of_machine()
            )));
        }
        let asked = ConnectionLimits { connections: self.connections as usize, ..ConnectionLimits::DEFAULT };
        let (fitting, files) = asked.within_open_files();
        let most = fitting.connections;
        if most < asked.connections {
            screen.warn(&format!(
                "the system gives {files} open files, so there can be {most} connections instead of {}; raise the limit with \
                 ulimit -Hn",
                self.connections
            ));
        }
        Ok(Limits {
            batch: self.batch as usize,
            connections: most,
            address_connections: self.address_connections as usize,
            // Each request for hints takes all the threads it may have, for seconds or minutes.
            working: self.working.unwrap_or(if is_maker { 1 } else { 64 }) as usize,
            address_hints: self.address_hints as usize,
            rate: self.rate,
            burst: self.burst.max(self.rate),
            request_time: self.request_time,
            idle: self.idle,
            memory,
            request_memory: self.request_memory.unwrap_or(memory / 2),
            address_memory: self.address_memory.unwrap_or(memory / 2),
            ..Limits::default()
        })
    }
}

pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (0.001..=1e9).contains(rate));
    rate.ok_or_else(|| "give a number from 0.001 to 1000000000".to_owned())
}

/// Reads `1048576`, `64K`, `512M`, `4G` or `1T`, by powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        Some(b't' | b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let size = number.parse::<u64>().ok().filter(|_| plain).and_then(|number| number.checked_mul(1 << shift));
    size.filter(|size| (1 << 20..=1 << 50).contains(size)).ok_or_else(|| {
        "give a size from 1M to 1024T: a whole number of bytes, or with K, M, G or T".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, size) in
            [("1048576", 1 << 20), ("2048K", 1 << 21), ("512m", 1 << 29), ("4G", 1 << 32), ("1T", 1 << 40)]
        {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in [
            "",
            "G",
            "0",
            "1",
            "1023K",
            "-4G",
            "+4G",
            "4GB",
            "4 G",
            "1.5G",
            "99999999T",
            "99999999999999999999",
        ] {
            assert!(parse_size(text).is_err_and(|why| why.contains("1M to")), "{text}");
        }
    }
}

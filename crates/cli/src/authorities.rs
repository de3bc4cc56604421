//! Machines without certificates of authorities, such as small containers.

use std::env;

/// Lets commands of a fleet connect where the system has no certificates of authorities. A fleet trusts one certificate by its fingerprint and needs
/// none of those, but the NATS client reads them all the same, and fails where there is nothing to read.
pub(crate) fn do_without() {
    if env::args_os().nth(1).is_none_or(|command| command != "fleet") {
        return;
    }
    let system = rustls_native_certs::load_native_certs();
    if system.certs.is_empty() && !system.errors.is_empty() {
        // SAFETY: the command begins here, and has no other thread that could read the environment.
        unsafe { env::set_var("SSL_CERT_FILE", "/dev/null") };
        // SAFETY: the same.
        unsafe { env::remove_var("SSL_CERT_DIR") };
    }
}

//! The server, its connections and what damages it: one program, apart from the tests that keep the processor busy, since
//! these wait for each other by the clock.

mod connections;
mod download;
mod seen;
mod server;
mod server_damage;
mod support;
mod transport;

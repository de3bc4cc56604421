//! Terminal side of warpsmith's programs: everything a command line needs that is not about keys, patterns or databases.
//!
//! [`program::main`] runs a program from its command line to its exit code. Commands fail with [`exit::Failure`], deliver results
//! through [`stdout::Stdout`], and report to people through [`stderr`] and [`screen::Screen`], which share the terminal. Nothing on
//! stderr repeats what may be a secret ([`redact`]).
//!
//! Knows devices by name only; what runs on them is the program's business.

pub mod block;
pub mod colour;
pub mod config;
pub mod config_command;
pub mod devices;
pub mod exit;
pub mod hardening;
pub mod human;
pub mod input;
pub mod json;
pub mod manual;
mod name;
pub mod program;
pub mod prompt;
pub mod redact;
pub mod screen;
pub mod signals;
pub mod stderr;
pub mod stdout;
pub mod styled;
pub mod terminal;
pub mod times;
pub mod token;
pub mod web;

pub use name::program_name;

//! End to end: the binary as people and scripts run it.
//!
//! Claims about keys are checked with the `secp256k1` and `nostr` crates and plain integers, not with our own code.

mod artifacts;
mod bitcoin;
mod chains;
mod contracts;
mod damage;
mod databases;
mod discretion;
mod drivers;
mod encryption;
mod endings;
mod ethereum;
mod files;
mod forecasts;
mod given;
mod harness;
mod hooks;
mod importing;
mod json;
mod lists;
mod live;
mod manners;
mod masks;
mod memory;
mod mining;
mod openpty;
mod pages;
mod pty;
mod rules;
mod salt_service;
mod scan;
mod scores;
mod settings;
mod split;
mod terminal;
mod tools;
mod unlinkable;
mod verify;
mod wallets;

use warpsmith_trials::programs::{anvil, foreign};

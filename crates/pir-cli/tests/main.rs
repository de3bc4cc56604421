//! End to end: the program as people and scripts run it, servers and clients as processes of their own.

mod codes;
mod damage;
mod discretion;
mod dumps;
mod fold;
mod follow;
mod guard;
mod harness;
mod imports;
mod json;
mod load;
mod manners;
mod network;
mod pages;
mod proxy;
mod renewal;
mod retrieval;
mod tools;

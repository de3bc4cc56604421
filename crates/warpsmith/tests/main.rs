//! One program for all tests of this crate, and for those of the workspace as a whole: each program would link everything again.

mod docs;
mod documents;
mod examples;
mod examples_of_items;
mod face;
mod interface;
mod layering;
mod rings;

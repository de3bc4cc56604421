//! Arbitrary bytes as every message of private retrieval, for a small database and a large one, and as the head of a database:
//! each is refused with a reason, or reads back as what it was.
//! Run: `cargo fuzz run pir_messages fuzz/corpus/pir_messages fuzz/seeds/pir_messages`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpsmith_pir::database::Description;
use warpsmith_pir::maker::{self, Request};
use warpsmith_pir::wire::{Picks, read_answers, read_queries, read_updates};
use warpsmith_pir::{Choice, Params};

fuzz_target!(|data: &[u8]| {
    let is_told = |error: warpsmith_pir::Error| assert!(!error.to_string().is_empty());
    for (entries, size) in [(30, 8), (1 << 20, 40)] {
        let params = Params::new(Choice::new(entries, size)).expect("these are allowed");
        if let Ok((_, queries)) = read_queries(&params, data).map_err(is_told) {
            queries.for_each(|query| drop(Picks::read(&params, query).map_err(is_told)));
        }
        Picks::read(&params, data).map_err(is_told).ok();
        read_answers(&params, data).map_err(is_told).ok();
        maker::read(&params, data).map_err(is_told).ok();
        for update in read_updates(&params, data).map_err(is_told).into_iter().flatten() {
            assert!(update.indices.iter().all(|&index| params.place(index).is_ok()));
        }
        if let Ok(request) = Request::read(data).map_err(is_told) {
            assert_eq!(request.to_bytes(), data);
            request.cost(&params).map_err(is_told).ok();
        }
    }
    if let Ok(description) = Description::read("head", data).map_err(is_told) {
        assert!(description.data_bytes() >= description.params.entries());
    }
});

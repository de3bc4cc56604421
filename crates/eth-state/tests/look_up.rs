//! Private look-ups: the example runs to its end, and what goes wrong is told.

use warpsmith_eth_state::{Error, look_up};
use warpsmith_rms24::Lanes;
use warpsmith_rms24::hints::make::Processor;

#[path = "../examples/private_look_up.rs"]
mod private_look_up;

#[test]
fn a_private_look_up() {
    private_look_up::main().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let processor = Processor { lanes: Lanes::detect(), threads: 1 };
    let error = look_up("http://127.0.0.1:9", &state).on(processor).open().unwrap_err();
    assert!(matches!(error, Error::Retrieval(_)), "{error}");
    assert!(!state.exists());
    assert!(matches!(look_up("ftp://x", &state).open(), Err(Error::Retrieval(_))));
}

//! Private look-ups: the example runs to its end, a state tells its block, and what goes wrong is
//! told.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use warpsmith_eth_state::import::{StateTable, Synthetic};
use warpsmith_eth_state::look_up::Answer;
use warpsmith_eth_state::{ChainHead, Error, look_up, open_database};
use warpsmith_rms24::Lanes;
use warpsmith_rms24::hints::make::Processor;
use warpsmith_rms24::server::{Limits, Role, Server};

#[path = "../examples/private_look_up.rs"]
mod private_look_up;

#[test]
fn a_private_look_up() {
    private_look_up::main().unwrap();
}

fn processor() -> Processor {
    Processor { lanes: Lanes::detect(), threads: 1 }
}

/// The block travels from the records through the server's answer to whoever reads.
#[test]
fn a_state_tells_its_block_to_those_who_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let (database, state) = (folder.path().join("state.pir"), folder.path().join("my.state"));
    let head = ChainHead { chain_id: 1, number: 4711, time: 1_700_000_000, hash: [0xab; 32] };
    let synthetic = Synthetic::new(500, 3).unwrap();
    let table = StateTable {
        database: database.clone(),
        block_size: None,
        epoch: 0,
        room: 0,
        names: false,
        head: Some(head),
    };
    table.build(synthetic.keys(), &|take| synthetic.each(take), &mut |_| Ok(())).unwrap();
    let live = Arc::new(open_database(&database, Lanes::detect(), 0).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (server, stop) = (Server::new(live, Role::Library, Limits::default()), AtomicBool::new(false));
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(listener, &stop, &|_| ()));
        let read = || -> warpsmith_eth_state::Result<_> {
            let mut library = look_up(&url, &state).on(processor()).queries(64).open()?;
            let (address, account) = synthetic.account(7);
            let hex: String = address.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok((library.get(&format!("0x{hex}"))?, account, library.head()))
        };
        let read = read();
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        let (answer, account, told) = read.unwrap();
        assert_eq!((answer, told), (Answer::Account(Some(account)), Some(head)));
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let error = look_up("http://127.0.0.1:9", &state).on(processor()).open().unwrap_err();
    assert!(matches!(error, Error::Retrieval(_)), "{error}");
    assert!(!state.exists());
    assert!(matches!(look_up("ftp://x", &state).open(), Err(Error::Retrieval(_))));
}

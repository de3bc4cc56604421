//! A database, its server, and a client that reads it without telling the server what it reads.
//!
//!     cargo run --release -p warpsmith-eth-state --example private_look_up
//!
//! Server and client are one program here. In earnest the server is another machine, run by somebody who is not to know.

use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use warpsmith_eth_state::look_up;
use warpsmith_eth_state::look_up::Answer;
use warpsmith_rms24::Lanes;
use warpsmith_rms24::hints::make::Processor;
use warpsmith_rms24::server::{Limits, Role, Server};
use warpsmith_rms24::table::{Plan, Take, build};
use warpsmith_rms24::updates::Live;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("warpsmith-look-up-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let done = serve_and_read(&folder);
    std::fs::remove_dir_all(&folder)?;
    done
}

fn serve_and_read(folder: &Path) -> Result<(), Box<dyn Error>> {
    let database = folder.join("squares.pir");
    make_squares(&database)?;
    let mut live = Live::open(&database, Lanes::detect(), 0)?;
    live.load(true, &mut |_| Ok(()))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = Server::new(Arc::new(live), Role::Library, Limits::default());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(listener, &stop, &|_| ()));
        let read = read_squares(&url, &folder.join("my.state"));
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("the server does not panic")?;
        Ok(read?)
    })
}

/// The client: all that a program needs which reads somebody else's database.
fn read_squares(url: &str, state: &Path) -> warpsmith_eth_state::Result<()> {
    // The first time this streams the database and makes hints; later it opens what it made.
    let processor = Processor { lanes: Lanes::detect(), threads: 2 };
    let mut library = look_up(url, state).on(processor).queries(64).open()?;
    let square = library.get(&hex(12))?;
    println!("12 squared is {square:?}");
    assert_eq!(square, Answer::Value(Some(144u32.to_be_bytes().to_vec())));
    // What is not there takes as many queries, so the server cannot tell.
    assert_eq!(library.get(&hex(5000))?, Answer::Value(None));
    println!("{} queries remain", library.remaining());
    Ok(())
}

/// A database of numbers and their squares.
fn make_squares(path: &Path) -> warpsmith_rms24::Result<()> {
    const NUMBERS: u32 = 1000;
    let plan = Plan::tagged(NUMBERS.into(), 4);
    let source = &mut |take: &mut Take<'_>| {
        (0..NUMBERS).try_for_each(|number| take(&number.to_be_bytes(), &(number * number).to_be_bytes()))
    };
    build(path, &plan, source, &mut |_| Ok(()))?;
    Ok(())
}

/// A key as a person writes it.
fn hex(number: u32) -> String {
    format!("{number:08x}")
}

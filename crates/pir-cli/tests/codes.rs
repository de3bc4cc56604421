//! Codes of contracts, looked up privately: what the proxy says is what the node says, and the server sees the same whatever is asked.

use std::time::Instant;

use serde_json::{Value, json};
use warpsmith_eth_state::{Account, account_record, code_hash};
use warpsmith_rms24::keyword::Layout;
use warpsmith_rms24::table::{self, Plan};
use warpsmith_trials::programs::anvil::{ACCOUNT, Anvil};
use warpsmith_trials::programs::foreign;

use crate::follow::Following;
use crate::harness::{Desk, PATIENCE, Server, pir, text};
use crate::network::Proxy as Recorder;
use crate::proxy::Running;

/// A code of this length that is not like any other.
fn code_of(length: usize) -> Vec<u8> {
    // Begins with STOP, so that nobody who calls it gets anywhere.
    (0..length).map(|i| if i == 0 { 0 } else { (i * i + i / 251 + length) as u8 }).collect()
}

/// Puts a contract with this code on the chain, in a block of its own; its address.
fn deploy(anvil: &Anvil, code: &[u8]) -> String {
    // PUSH2 length, DUP1, PUSH1 12, PUSH1 0, CODECOPY, PUSH1 0, RETURN; and one STOP to make it 12 bytes with the push.
    let [high, low] = (code.len() as u16).to_be_bytes();
    let init = [&[0x61, high, low, 0x80, 0x60, 12, 0x5f, 0x39, 0x5f, 0xf3, 0, 0], code].concat();
    anvil.send(None, 0, &const_hex::encode(init)).expect("a contract")
}

fn node_code(anvil: &Anvil, address: &str) -> Value {
    anvil.ask("eth_getCode", json!([address, "latest"]))
}

#[test]
fn codes_are_those_of_the_node_and_the_server_always_sees_the_same() {
    let Some(anvil) = Anvil::start() else { return };
    let desk = Desk::new();
    // Around the ends of chunks of 4080 bytes, and the longest that there may be.
    let lengths = [1, 4079, 4080, 4081, 8160, 24_576];
    let mut contracts: Vec<String> = lengths.iter().map(|length| deploy(&anvil, &code_of(*length))).collect();
    contracts.push(deploy(&anvil, &code_of(4081)));
    let (database, codes) = (desk.path("state.pir"), desk.path("codes.pir"));
    pir(&["build", &database, "--rpc", &anvil.url, "--room", "200", "--codes", &codes, "--codes-room", "60"])
        .code(0);
    let about = pir(&["info", &codes, "--json"]).code(0).json().remove(0);
    assert_eq!((text(&about["keyword"], "layout"), &about["keyword"]["chunks"]), ("chunks", &7.into()));
    // Each code once, in as many chunks as it has: 1, 1, 2, 2, 3 and 7, and what anvil has put on its chain.
    let others: u64 = about["keyword"]["keys"].as_u64().unwrap() - 16;
    assert!(others < 8, "{about}");
    let (server, code_server) = (Server::start(&database, &[]), Server::start(&codes, &[]));
    let (mine, of_codes) = (desk.path("mine.state"), desk.path("codes.state"));
    server.hint(&mine, &["--queries", "2000"]).code(0);
    code_server.hint(&of_codes, &["--queries", "2000"]).code(0);
    // By hash, without a wallet.
    let hash = format!("0x{}", const_hex::encode(code_hash(&code_of(8160))));
    let line = code_server.get(&of_codes, &[&hash]).code(0).json().remove(0);
    assert_eq!(text(&line, "value"), const_hex::encode(code_of(8160)));
    code_server.get(&of_codes, &[&"ab".repeat(32)]).code(1);
    let (seen, seen_codes) = (Recorder::before(&server), Recorder::before(&code_server));
    let flags = ["--codes", &seen_codes.url, "--codes-state", &of_codes, "--round", "3"];
    let (proxy, _) = Running::start_with(&seen.url, &mine, &flags);
    let code = |address: &str| proxy.call("eth_getCode", json!([address, "latest"]));
    let nobody = format!("0x{}", "ab".repeat(20));
    let asked: Vec<&str> =
        contracts.iter().map(String::as_str).chain([ACCOUNT, &nobody, &contracts[0]]).collect();
    for (number, address) in asked.iter().enumerate() {
        assert_eq!(code(address), Ok(node_code(&anvil, address)), "{address}");
        // One round, and one look-up of seven chunks.
        assert_eq!(
            (seen.queries.lock().unwrap().len(), seen_codes.queries.lock().unwrap().len()),
            (number + 1, number + 1)
        );
    }
    let each = about["client"]["query_bytes"].as_u64().unwrap() as usize;
    assert!(seen_codes.queries.lock().unwrap().iter().all(|body| body.len() == 16 + 7 * 3 * each));
    let rounds = seen.queries.lock().unwrap().clone();
    assert!(rounds.iter().all(|body| body.len() == rounds[0].len() && body[12..16] == [9, 0, 0, 0]));
    // A batch: two codes do not fit a round of three, and something else fits beside one.
    let one = |id: u64, method: &str, who: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": [who, "latest"]});
    let batch = json!([
        one(1, "eth_getCode", &contracts[3]),
        one(2, "eth_getBalance", ACCOUNT),
        one(3, "eth_getCode", ACCOUNT),
    ]);
    let answers: Value = serde_json::from_str(&proxy.post(&batch.to_string())).unwrap();
    assert_eq!(answers[0]["result"], node_code(&anvil, &contracts[3]));
    assert_eq!(answers[1]["result"], anvil.ask("eth_getBalance", json!([ACCOUNT, "latest"])));
    assert_eq!(answers[2]["result"], "0x");
    assert_eq!(
        (seen.queries.lock().unwrap().len(), seen_codes.queries.lock().unwrap().len()),
        (asked.len() + 2, asked.len() + 2)
    );
    clients(&anvil, &proxy, &[&contracts[0], &contracts[3], &contracts[5], ACCOUNT]);
    // New contracts come with their blocks, and go with them.
    let mut following = Following::start(&database, &anvil, &["--codes", &codes]);
    let new = deploy(&anvil, &code_of(5000));
    let known = deploy(&anvil, &code_of(8160));
    let same_as_node = |address: &str| {
        let begin = Instant::now();
        loop {
            let (ours, expected) = (code(address), node_code(&anvil, address));
            if ours.as_ref() == Ok(&expected) {
                return expected;
            }
            assert!(begin.elapsed() < PATIENCE, "{address}: {ours:?}");
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
    };
    assert_eq!(same_as_node(&new), hex(&code_of(5000)));
    assert_eq!(same_as_node(&known), hex(&code_of(8160)));
    // Killed and begun again, with a database of codes that is ahead or not.
    drop(following);
    contracts.push(deploy(&anvil, &code_of(7)));
    following = Following::start(&database, &anvil, &["--codes", &codes]);
    assert_eq!(same_as_node(&contracts[7]), hex(&code_of(7)));
    anvil.ask("anvil_reorg", json!([2, []]));
    assert_eq!(same_as_node(&contracts[7]), "0x");
    assert_eq!(same_as_node(&known), "0x");
    assert_eq!(same_as_node(&new), hex(&code_of(5000)));
    // More than there is room for: the table of codes grows, and the proxy makes new hints for it.
    let many: Vec<String> = (0..12).map(|i| deploy(&anvil, &code_of(24_500 + i))).collect();
    assert_eq!(same_as_node(&many[11]), hex(&code_of(24_511)));
    assert_eq!(same_as_node(&many[0]), hex(&code_of(24_500)));
    assert_eq!(same_as_node(&new), hex(&code_of(5000)));
    let grown = pir(&["info", &codes, "--json", "--verify"]).code(0).json().remove(0);
    assert!(grown["entries"].as_u64() > about["entries"].as_u64(), "{grown}");
    drop(following);
    proxy.stop();
    // A longer one than a look-up asks for is refused where it would be put in.
    let text = desk.write("long.txt", format!("{} {}\n", "cd".repeat(32), "01".repeat(7 * 4080)));
    pir(&["update", &codes, &text]).code(2).says(&["long.txt:1: ", "8 chunks, and a look-up asks for 7"]);
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", const_hex::encode(bytes))
}

/// Programs that people have.
fn clients(anvil: &Anvil, proxy: &Running, addresses: &[&str]) {
    let expected: Vec<Value> = addresses.iter().map(|address| node_code(anvil, address)).collect();
    let given = json!({"url": proxy.url(), "addresses": addresses});
    let ethers = r"
        const { JsonRpcProvider } = require('ethers');
        const p = new JsonRpcProvider(given.url);
        show(await Promise.all(given.addresses.map(address => p.getCode(address))));
        p.destroy();";
    let viem = r"
        const { createPublicClient, http } = require('viem');
        const c = createPublicClient({ transport: http(given.url, { batch: true }) });
        const codes = await Promise.all(given.addresses.map(address => c.getCode({ address })));
        show(codes.map(code => code ?? '0x'));";
    for (library, script) in [("ethers", ethers), ("viem", viem)] {
        if let Some(answer) = foreign::node(library, script, &given) {
            assert_eq!(answer, json!(expected), "{library}");
        }
    }
    let Some(folder) = foreign::folder("node_modules/.bin/cast") else { return };
    for (address, expected) in addresses.iter().zip(expected) {
        let mut command = std::process::Command::new(folder.join("node_modules/.bin/cast"));
        let output = command.args(["code", address, "--rpc-url", &proxy.url()]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), expected, "cast code {address}");
    }
}

/// A folder of three accounts in the format of plinko-rs: one without code and two contracts.
fn folder(desk: &Desk, codes: &[&[u8]]) -> (String, Vec<[u8; 20]>) {
    let (mut records, mut accounts, mut hashes) =
        (Vec::new(), Vec::new(), (codes.len() as u32).to_le_bytes().to_vec());
    let addresses: Vec<[u8; 20]> = (0..3).map(|number| [0x10 + number; 20]).collect();
    for (address, number) in addresses.iter().zip(0u32..) {
        records.extend(account_record(address, &Account { balance: 5, nonce: 1, code: number }));
        accounts.extend_from_slice(address);
        accounts.extend(number.to_le_bytes());
    }
    codes.iter().for_each(|code| hashes.extend(code_hash(code)));
    std::fs::create_dir(desk.path("folder")).unwrap();
    desk.write("folder/database.bin", records);
    desk.write("folder/account-mapping.bin", accounts);
    desk.write("folder/storage-mapping.bin", []);
    desk.write("folder/code_store.bin", hashes);
    (desk.path("folder"), addresses)
}

#[test]
fn codes_of_a_dump_come_from_a_list_and_wrong_ones_are_noticed() {
    let desk = Desk::new();
    let (first, second) = (code_of(100), code_of(9000));
    let (folder, addresses) = folder(&desk, &[&first, &second]);
    let hash = "11".repeat(32);
    let of_block = ["--chain-id", "1", "--block-number", "7", "--block-hash", &hash];
    let build = |name: &str, more: &[&str]| {
        let database = desk.path(name);
        pir(&[&["build", &database, &folder], &of_block[..], more].concat()).code(0);
        database
    };
    let (told, untold) = (build("told.pir", &["--code-hashes"]), build("untold.pir", &[]));
    let list = desk.write("codes.txt", format!("# codes\n0x{}\n", const_hex::encode(&first)));
    let codes = desk.path("codes.pir");
    pir(&["build", &codes, &list, "--format", "codes"]).code(0);
    // The second contract's code is not in the list, and here it is one with another hash.
    let wrong = desk.path("wrong.pir");
    let plan = Plan::new(Layout::Chunked(7), 2, 4096);
    table::build(
        wrong.as_ref(),
        &plan,
        &mut |take| [&first, &second].into_iter().try_for_each(|code| take(&code_hash(code), &code[1..90])),
        &mut |_| Ok(()),
    )
    .unwrap();
    let ask = |database: &str, codes: &str| -> Vec<Result<Value, String>> {
        let (server, of_codes) = (Server::start(database, &[]), Server::start(codes, &[]));
        let (mine, codes_state) = (desk.path("mine.state"), desk.path("codes.state"));
        server.hint(&mine, &[]).code(0);
        of_codes.hint(&codes_state, &["--queries", "200"]).code(0);
        let seen = Recorder::before(&of_codes);
        let flags = ["--codes", &seen.url, "--codes-state", &codes_state];
        let (proxy, _) = Running::start_with(&server.url, &mine, &flags);
        let answers = addresses.iter().map(|address| {
            let answer = proxy.call("eth_getCode", json!([hex(address), "latest"]));
            answer.map_err(|(_, message)| message)
        });
        let answers = answers.collect();
        assert_eq!(seen.queries.lock().unwrap().len(), addresses.len(), "one each, whatever comes of it");
        drop(proxy);
        for state in [mine, codes_state] {
            std::fs::remove_file(&state).unwrap();
            std::fs::remove_file(format!("{state}.journal")).unwrap();
        }
        answers
    };
    let says = |answer: &Result<Value, String>, why: &str| {
        assert!(answer.as_ref().is_err_and(|said| said.contains(why)), "{answer:?}");
    };
    let answers = ask(&told, &codes);
    assert_eq!(answers[..2], [Ok("0x".into()), Ok(hex(&first).into())]);
    says(&answers[2], "does not have its code");
    let answers = ask(&told, &wrong);
    assert_eq!(answers[0], Ok("0x".into()));
    answers[1..].iter().for_each(|answer| says(answer, "another hash"));
    let answers = ask(&untold, &codes);
    assert_eq!(answers[0], Ok("0x".into()));
    answers[1..].iter().for_each(|answer| says(answer, "--code-hashes"));
}

/// What a server of codes sees by the clock does not tell whether any code was asked for.
#[test]
fn by_the_clock_every_round_has_one_look_up_among_the_codes() {
    let desk = Desk::new();
    let (first, second) = (code_of(100), code_of(9000));
    let (folder, addresses) = folder(&desk, &[&first, &second]);
    let (database, codes, hash) = (desk.path("state.pir"), desk.path("codes.pir"), "11".repeat(32));
    let of_block = ["--chain-id", "1", "--block-number", "7", "--block-hash", &hash];
    pir(&[&["build", &database, &folder, "--code-hashes"], &of_block[..]].concat()).code(0);
    let list = desk.write("codes.txt", const_hex::encode(&first) + "\n" + &const_hex::encode(&second));
    pir(&["build", &codes, &list, "--format", "codes"]).code(0);
    let (server, of_codes) = (Server::start(&database, &[]), Server::start(&codes, &[]));
    let (mine, codes_state) = (desk.path("mine.state"), desk.path("codes.state"));
    server.hint(&mine, &["--queries", "12000"]).code(0);
    of_codes.hint(&codes_state, &["--queries", "21000"]).code(0);
    let (seen, seen_codes) = (Recorder::before(&server), Recorder::before(&of_codes));
    let flags = ["--codes", &seen_codes.url, "--codes-state", &codes_state, "--every", "100ms"];
    let (proxy, _) = Running::start_with(&seen.url, &mine, &flags);
    let wait_for = |rounds: usize| {
        let begin = Instant::now();
        while seen_codes.queries.lock().unwrap().len() < rounds {
            assert!(begin.elapsed() < PATIENCE, "no rounds");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    wait_for(3);
    // Three at once wait for three beats.
    let call = |id: u8| json!({"jsonrpc": "2.0", "id": id, "method": "eth_getCode", "params": [hex(&addresses[usize::from(id)]), "latest"]});
    let batch = Value::from_iter([0, 1, 2].map(call));
    let answers: Value = serde_json::from_str(&proxy.post(&batch.to_string())).unwrap();
    let found: Vec<&Value> = (0..3).map(|id| &answers[id]["result"]).collect();
    assert_eq!(found, [&json!("0x"), &json!(hex(&first)), &json!(hex(&second))]);
    let so_far = seen_codes.queries.lock().unwrap().len();
    wait_for(so_far + 3);
    proxy.stop();
    let (rounds, of_codes) = (seen.queries.lock().unwrap(), seen_codes.queries.lock().unwrap());
    assert_eq!(rounds.len(), of_codes.len(), "one of each at every beat");
    for all in [&rounds, &of_codes] {
        assert!(all.iter().all(|body| body.len() == all[0].len()));
    }
}

#[test]
fn what_cannot_be_about_codes_is_refused() {
    let desk = Desk::new();
    let (folder, _) = folder(&desk, &[b"a"]);
    let (new, state) = (desk.path("new.pir"), desk.path("state.pir"));
    // Two contracts, and the hash of one.
    pir(&["build", &new, &folder, "--code-hashes"])
        .code(2)
        .says(&["code_store.bin", "code 2, and there are 1"]);
    std::fs::remove_file(desk.path("folder/code_store.bin")).unwrap();
    pir(&["build", &new, &folder, "--code-hashes"]).code(2).says(&["code_store.bin"]);
    let twice = desk.write("twice.txt", format!("00\n{0}\nff\n{0}\n", "61".repeat(9000)));
    pir(&["build", &new, &twice, "--format", "codes"])
        .code(2)
        .says(&["twice.txt:4: this code is that of line 2"]);
    let bad = desk.write("bad.txt", "00\n0x6g\n");
    pir(&["build", &new, &bad, "--format", "codes"]).code(2).says(&["bad.txt:2: ", "is not hex"]);
    let bad = desk.write("bad.txt", "00\n60 60\n");
    pir(&["build", &new, &bad, "--format", "codes"]).code(2).says(&["bad.txt:2: 2 words"]);
    assert!(!desk.names().iter().any(|name| name.starts_with("new")), "{:?}", desk.names());
    pir(&["build", &new, &bad, "--codes", "x"]).code(2).says(&["--rpc"]);
    pir(&["build", &state, &folder]).code(0);
    let server = Server::start(&state, &[]);
    let mine = desk.path("mine.state");
    server.hint(&mine, &[]).code(0);
    let other = desk.path("other.state");
    server.hint(&other, &[]).code(0);
    let proxy = |more: &[&str]| {
        let args = ["proxy", "--listen", "127.0.0.1:0", "--server", &server.url, "--state", &mine];
        pir(&[&args[..], more].concat())
    };
    proxy(&["--codes", &server.url]).code(2).says(&["--codes-state"]);
    proxy(&["--codes", &server.url, "--codes-state", &other]).code(2).says(&["database of codes"]);
    proxy(&["--codes", &server.url, "--codes-state", &desk.path("none")])
        .code(2)
        .says(&["the state is missing"]);
    proxy(&["--codes", &server.url, "--codes-state", &other, "--round", "1"]).code(2).says(&["2 or more"]);
    let both = [
        "--codes",
        &server.url,
        "--codes-state",
        &other,
        "--fallback",
        "http://127.0.0.1:1",
        "--allow",
        "eth_getCode",
    ];
    proxy(&both).code(2).says(&["answered privately"]);
    let follow = ["follow", &state, "--rpc", "http://127.0.0.1:1", "--codes", &state];
    pir(&follow).code(2).says(&["no database of codes"]);
}

//! Where keys come from: every one from 32 bytes of the system call `getrandom`, or there is none.
//!
//! Statistics cannot show this, since a bad generator behind a hash looks perfect. So the real program is watched from
//! outside: its system calls are answered with bytes we chose, and its keys must follow from them; and where the call is
//! refused, it must end without a key.
#![cfg(target_os = "linux")]

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use num_bigint::BigUint;
use serde_json::Value;
use tempfile::tempdir;
use warpsmith_trials::Random;

const BINARY: &str = env!("CARGO_BIN_EXE_warpsmith");

/// Searches that end soon, three keys each.
const SEARCHES: [&[&str]; 3] = [&["npub", "qq"], &["eth", "ab"], &["btc", "1A"]];

/// A call of `getrandom` that the program made, and what it was answered.
struct Drawn {
    flags: u64,
    bytes: Vec<u8>,
}

/// What was seen of a run.
struct Watched {
    code: i32,
    drawn: Vec<Drawn>,
    /// Every file it opened.
    opened: Vec<String>,
}

fn ptrace(request: libc::c_uint, pid: libc::pid_t, address: u64, data: u64) -> io::Result<i64> {
    // SAFETY: requests on a child of ours that is stopped; addresses of ours are only those passed by `call`.
    let out = unsafe { libc::ptrace(request, pid, address, data) };
    if out == -1 { Err(io::Error::last_os_error()) } else { Ok(out) }
}

/// The system call at which a child stopped: whether it begins, its number or result, and its arguments.
fn call(pid: libc::pid_t) -> io::Result<(bool, i64, [u64; 6])> {
    // `struct ptrace_syscall_info`: op in the first byte, number or result in the fourth word, then arguments.
    let mut info = [0u64; 16];
    ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size_of_val(&info) as u64, info.as_mut_ptr() as u64)?;
    let arguments = std::array::from_fn(|at| info[4 + at]);
    Ok((info[0] as u8 == 1, info[3] as i64, arguments))
}

/// Writes to a child's memory, whole words at a time.
fn poke(pid: libc::pid_t, address: u64, bytes: &[u8]) -> io::Result<()> {
    for (at, word) in bytes.chunks(8).enumerate() {
        let place = address + 8 * at as u64;
        let mut whole = peek(pid, place)?;
        whole[..word.len()].copy_from_slice(word);
        ptrace(libc::PTRACE_POKEDATA, pid, place, u64::from_ne_bytes(whole))?;
    }
    Ok(())
}

fn peek(pid: libc::pid_t, address: u64) -> io::Result<[u8; 8]> {
    // SAFETY: as in `ptrace`; the result is the word, so errors are told by errno alone.
    let word = unsafe {
        *libc::__errno_location() = 0;
        libc::ptrace(libc::PTRACE_PEEKDATA, pid, address, 0)
    };
    match io::Error::last_os_error() {
        error if word == -1 && error.raw_os_error() != Some(0) => Err(error),
        _ => Ok((word as u64).to_ne_bytes()),
    }
}

fn text(pid: libc::pid_t, address: u64) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < 4096
        && let Ok(word) = peek(pid, address + bytes.len() as u64)
    {
        bytes.extend(word.iter().take_while(|byte| **byte != 0));
        if word.contains(&0) {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the n-th call gets: nothing like it comes from anywhere else, and no 32 bytes of it are like others. Below the
/// group's order, as no byte has its highest bit.
fn answer(n: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Random::from_seed(n as u64).fill(&mut bytes);
    bytes.iter().map(|byte| byte & 0x7f).collect()
}

/// Runs a program and answers its calls of `getrandom`, by their number and length. An error where the system does not let us.
fn watch(command: &mut Command, answer: &dyn Fn(usize, usize) -> Vec<u8>) -> io::Result<Watched> {
    // SAFETY: between fork and exec, only this one system call.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let child = command.spawn()?.id() as libc::pid_t;
    let mut status = 0;
    // SAFETY: waits for a child of ours and writes to a place of ours.
    let mut wait = |pid| unsafe { libc::waitpid(pid, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    assert_eq!(wait(child), child);
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    ptrace(libc::PTRACE_SETOPTIONS, child, 0, options as u64)?;
    ptrace(libc::PTRACE_SYSCALL, child, 0, 0)?;
    let (mut drawn, mut opened) = (Vec::new(), Vec::new());
    // Buffers that threads wait for, and the threads that are known.
    let mut waiting: HashMap<libc::pid_t, Option<(u64, u64)>> = HashMap::from([(child, None)]);
    loop {
        let mut status = 0;
        // SAFETY: as above.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if pid == child {
                let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 };
                return Ok(Watched { code, drawn, opened });
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let is_new = !waiting.contains_key(&pid);
        let mut pass = 0;
        if signal == libc::SIGTRAP | 0x80 {
            let (begins, number, arguments) = call(pid)?;
            if begins && number == libc::SYS_getrandom {
                waiting.insert(pid, Some((arguments[0], arguments[2])));
            } else if begins && number == libc::SYS_openat {
                opened.push(text(pid, arguments[1]));
            } else if !begins
                && number > 0
                && let Some((address, flags)) = waiting.insert(pid, None).flatten()
            {
                let bytes = answer(drawn.len(), number as usize);
                poke(pid, address, &bytes)?;
                drawn.push(Drawn { flags, bytes });
            }
        } else if status >> 16 == 0 && !(is_new && signal == libc::SIGSTOP) {
            pass = signal as u64;
        }
        waiting.entry(pid).or_insert(None);
        // A thread may be gone by now.
        let _ = ptrace(libc::PTRACE_SYSCALL, pid, 0, pass);
    }
}

/// The order of the group.
fn order() -> BigUint {
    BigUint::parse_bytes(b"fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16).unwrap()
}

/// Whether a key lies where a walk from `start` comes by: up to an image and a sign it is start + u + v * lambda, u below
/// 2^80 and v below 2^11. A number that has nothing to do with the start does so with a chance below 2^-160.
fn follows(key: &BigUint, start: &BigUint) -> bool {
    let n = order();
    let lambda =
        BigUint::parse_bytes(b"5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72", 16)
            .unwrap();
    let near = BigUint::from(1u8) << 80;
    let mut image = key.clone();
    for _ in 0..3 {
        for signed in [image.clone(), &n - &image] {
            let mut away = (signed + &n - start + (&n - &lambda) * 2047u32) % &n;
            for _ in 0..2 * 2047 {
                if away < near || &n - &away < near {
                    return true;
                }
                away = (away + &lambda) % &n;
            }
        }
        image = image * &lambda % &n;
    }
    false
}

#[test]
fn every_key_follows_from_32_bytes_of_the_system_call() {
    for search in SEARCHES {
        let folder = tempdir().unwrap();
        let file = folder.path().join("keys.json");
        let mut command = Command::new(BINARY);
        command.args(search).args([
            "--threads",
            "1",
            "--count",
            "3",
            "--device",
            "cpu",
            "--json",
            "--output",
        ]);
        command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let watched = match watch(&mut command, &answer) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EIO | libc::ENOSYS)) => {
                eprintln!("SKIPPED: the program's system calls cannot be watched here ({error}); root can");
                return;
            }
            other => other.unwrap(),
        };
        assert_eq!(watched.code, 0, "{search:?}");
        let keys = std::fs::read_to_string(&file).unwrap();
        let keys = keys.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            BigUint::parse_bytes(line["secret_key"].as_str().unwrap().as_bytes(), 16).unwrap()
        });
        let keys: Vec<BigUint> = keys.collect();
        assert_eq!(keys.len(), 3);

        // Whole keys to a call, one or many, without flags: no file, no other pool.
        let calls: Vec<_> =
            watched.drawn.iter().filter(|drawn| drawn.bytes.len().is_multiple_of(32)).collect();
        assert!(calls.iter().all(|drawn| drawn.flags == 0));
        let seeds = calls.iter().flat_map(|drawn| drawn.bytes.chunks_exact(32));
        let starts: Vec<BigUint> = seeds.map(BigUint::from_bytes_be).collect();
        assert_eq!(starts.iter().collect::<HashSet<_>>().len(), starts.len(), "every answer is another");
        let mut used = Vec::new();
        for key in &keys {
            let of: Vec<usize> = (0..starts.len()).filter(|at| follows(key, &starts[*at])).collect();
            assert_eq!(of.len(), 1, "{search:?}: a key follows from 32 bytes of a draw, not from {of:?}");
            used.extend(of);
        }
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 3, "every key has 32 bytes of its own");
        assert!(!follows(&(&keys[0] + (BigUint::from(1u8) << 100)), &starts[used[0]]), "the test can fail");
        let random: Vec<_> = watched.opened.iter().filter(|path| path.contains("random")).collect();
        assert!(random.is_empty(), "{random:?}");
        assert!(watched.opened.iter().any(|path| path.contains("keys.json")), "the watch sees files");
    }
}

/// An emulator or a sandbox may answer every call alike. Zeros and all ones are no keys, so that waiting for others would last for ever.
#[test]
fn a_generator_that_repeats_itself_ends_the_program() {
    for constant in [0, 0x42, 0xff] {
        for search in SEARCHES {
            let folder = tempdir().unwrap();
            let (file, log) = (folder.path().join("keys.json"), folder.path().join("log"));
            let mut command = Command::new(BINARY);
            command.args(search).args(["--threads", "1", "--device", "cpu", "--output"]).arg(&file);
            command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
            let watched = match watch(&mut command, &|_, length| vec![constant; length]) {
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EIO | libc::ENOSYS)) =>
                {
                    eprintln!(
                        "SKIPPED: the program's system calls cannot be watched here ({error}); root can"
                    );
                    return;
                }
                other => other.unwrap(),
            };
            let said = std::fs::read_to_string(&log).unwrap();
            assert_eq!(watched.code, 4, "{search:?}, {constant:#x}: {said}");
            assert!(said.contains("getrandom gave the same bytes twice"), "{said}");
            assert!(std::fs::read(&file).unwrap_or_default().is_empty(), "no key was written");
        }
    }
}

/// Lets a program run without a system call, which fails with this error.
fn without(command: &mut Command, call: i64, error: i32) {
    let refuse = libc::SECCOMP_RET_ERRNO | error as u32;
    // SAFETY: between fork and exec, only system calls, on data of this frame.
    unsafe {
        command.pre_exec(move || {
            let step = |code: u32, yes, no, k| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
            let mut steps = [
                step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
                step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
                step(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
                step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
            ];
            let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

#[test]
fn where_the_system_call_is_refused_there_is_no_key() {
    let folder = tempdir().unwrap();
    // As sandboxes and old kernels refuse it.
    for (search, error) in SEARCHES.into_iter().zip([libc::EPERM, libc::ENOSYS, libc::EPERM]) {
        let file = folder.path().join("keys.json");
        for output in [&[][..], &["--output", file.to_str().unwrap()]] {
            let mut command = Command::new(BINARY);
            command.args(search).args(["--threads", "1", "--device", "cpu", "--json"]).args(output);
            without(&mut command, libc::SYS_getrandom, error);
            let run = match command.output() {
                Err(error) => {
                    eprintln!("SKIPPED: system calls cannot be refused here ({error})");
                    return;
                }
                Ok(run) => run,
            };
            let said = String::from_utf8_lossy(&run.stderr);
            assert_eq!(run.status.code(), Some(4), "{search:?}: {said}");
            assert!(said.contains("no random numbers") && said.contains("no other source"), "{said}");
            let told: Value = serde_json::from_slice(&run.stdout).expect("one document");
            assert_eq!((&told["event"], &told["code"]), (&"error".into(), &4.into()), "{told}");
            assert!(std::fs::read(&file).unwrap_or_default().is_empty(), "no key was written");
        }
        // The control: the same run with another call refused, one that nothing needs.
        let mut command = Command::new(BINARY);
        command.args(search).args(["--threads", "1", "--device", "cpu", "--quiet"]);
        without(&mut command, libc::SYS_acct, error);
        assert_eq!(command.output().unwrap().status.code(), Some(0));
    }
}

/// The generator that emptied wallets by the thousand is known by its constants: the matrix and the multiplier of its
/// initialisation for 32 bits, the matrix for 64.
#[test]
fn no_mersenne_twister_is_in_the_program() {
    let program = std::fs::read(BINARY).unwrap();
    // One pass for all: a constant is found where its lowest byte is.
    let holds = |constant: &[u8]| {
        let mut rest = &program[..];
        while let Some(at) = rest.iter().position(|byte| *byte == constant[0]) {
            if rest[at..].starts_with(constant) {
                return true;
            }
            rest = &rest[at + 1..];
        }
        false
    };
    assert!(holds(&0x428a_2f98_u32.to_le_bytes()), "the first constant of SHA-256 is found");
    // Four bytes alone occur by chance.
    assert!(!(holds(&0x9908_b0df_u32.to_le_bytes()) && holds(&0x6c07_8965_u32.to_le_bytes())), "MT19937");
    assert!(!holds(&0xb502_6f5a_a966_19e9_u64.to_le_bytes()), "MT19937-64");
}

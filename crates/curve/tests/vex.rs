//! The encoding of products that most machines lack: the same tests once more, on a processor shown as one with AVX-IFMA.

use std::env;
use std::path::Path;
use std::process::Command;

use warpsmith_simd::{Ifma256, Simd};

/// Tests that take seconds where every product is a fault: field, walks, points, and sums with multiples of G.
const TESTS: [&str; 5] = [
    "lanes::lanes_agree_with_the_portable_field",
    "lanes::zero_is_seen_in_any_lane_and_by_both_names",
    "multiply::numbers_beyond_the_order_count_modulo_it",
    "points::every_key_of_a_group_is_right_for_random_origins",
    "walk::every_key_of_a_group_is_right_for_random_origins",
];

/// The code of 77 says that this machine cannot be shown as another.
const UNFIT: i32 = 77;

#[test]
fn products_in_vex_encoding_are_right() {
    if Ifma256::Vex.is_available() {
        // Then all tests run with it.
        return;
    }
    if !Simd::Avx2.is_available() {
        eprintln!("SKIPPED: this machine has no avx2, without which there is no AVX-IFMA");
        return;
    }
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("avx_ifma.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/avx_ifma.c");
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .output();
    match compiled {
        Err(error) => {
            eprintln!("SKIPPED: no C compiler (cc): {error}");
            return;
        }
        Ok(said) => assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr)),
    }
    let said = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "--nocapture"])
        .args(TESTS)
        .env("LD_PRELOAD", &library)
        .output()
        .expect("runs again");
    let (out, errors) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if said.status.code() == Some(UNFIT) {
        eprintln!("SKIPPED: {}", errors.trim());
        return;
    }
    assert!(said.status.success(), "{}\n{out}{errors}", said.status);
    assert!(out.contains(&format!("{} passed", TESTS.len())), "{out}");
    // It was another processor: without AVX-512, and with AVX-IFMA as set and as encoding.
    assert!(errors.contains("this machine has no AVX-512 IFMA\n"), "{errors}");
    assert!(!errors.contains("no AVX-IFMA") && !errors.contains("no avxifma"), "{errors}");
}

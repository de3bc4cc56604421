//! Manual, completions, devices, self-test, version.

use warpsmith_trials::programs::check_manual;

use crate::harness::{Desk, PROGRAM, pir, text};

#[test]
fn every_command_has_a_page_with_all_its_flags_and_completions() {
    let commands = check_manual(&PROGRAM);
    assert!(commands.iter().any(|name| name == "serve") && commands.len() > 15, "{commands:?}");
    let page = pir(&["man", "serve"]).code(0);
    assert!(page.stdout.contains(".TH warpsmith-pir-serve 1"), "{page:?}");
    pir(&["man", "served"]).code(2).says(&["'served' is no command of warpsmith-pir", "serve"]);
}

#[test]
fn help_fits_80_columns() {
    for command in ["serve", "get", "selftest", "devices"] {
        let mut program = assert_cmd::Command::new(PROGRAM.binary);
        let output = program.args([command, "--help"]).env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains(&format!("Usage: warpsmith-pir {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
    assert!(pir(&["--version"]).code(0).stdout.starts_with("warpsmith-pir "));
}

#[test]
fn the_self_test_passes_on_every_device_that_is_listed() {
    let devices = pir(&["devices", "--json"]).code(0).json();
    assert!(devices.iter().any(|line| line["event"] == "device" && line["id"] == "cpu"), "{devices:?}");
    for device in devices.iter().filter(|line| line["event"] == "device") {
        let id = text(device, "id");
        let tested = pir(&["selftest", "--device", id, "--json"]).code(0).json();
        assert!(tested.len() > 4, "{tested:?}");
        for line in tested {
            assert_eq!((text(&line, "device"), &line["ok"]), (id, &true.into()), "{line}");
            assert!(line["checked"].as_u64() > Some(0), "{line}");
        }
    }
    pir(&["selftest", "--device", "cuda:99"]).code(3).says(&["cuda:99", "warpsmith-pir devices"]);
}

/// A folder of LMDB, as address databases once were.
#[test]
fn a_folder_of_an_earlier_version_is_refused_with_the_way_on() {
    let desk = Desk::new();
    let old = desk.path("old");
    std::fs::create_dir(&old).unwrap();
    std::fs::write(format!("{old}/data.mdb"), [0; 8192]).unwrap();
    pir(&["build", &desk.path("x.pir"), &old]).code(4).says(&["warpsmith db build NEW OLD"]);
}

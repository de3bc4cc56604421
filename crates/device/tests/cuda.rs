//! CUDA's host code against a driver that is not one: a small C library with chosen faults (`fake/cuda.c`).
//!
//! Libraries are named by environment variables, so each case runs in a process of its own: a test starts this
//! very program again with the variables set, and the child does the work. Without a C compiler the tests say
//! so and pass.
#![cfg(all(feature = "cuda", unix))]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use warpsmith_device::{Api, Arg, Cache, Device, Error, Options, Queue, Source, Survey, survey};

const TEXT: &str = "kernels add blend huge";

/// Builds the library with these faults and runs `test` of this program as a child with it. In the child, runs
/// `work` instead. The child's end must report that nothing is left over, and no call without its context.
fn with_fake(test: &str, faults: &[&str], work: impl FnOnce(Survey)) {
    with(test, faults, "WARPSMITH_LIBNVRTC", "contexts 0", work);
}

fn with(test: &str, faults: &[&str], nvrtc: &str, end: &str, work: impl FnOnce(Survey)) {
    if std::env::var_os("WARPSMITH_TEST_CHILD").is_some() {
        return work(survey());
    }
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("libfake.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/cuda.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    cc.args(faults.iter().map(|fault| format!("-D{fault}")));
    match cc.status() {
        Ok(status) => assert!(status.success(), "the fake library does not compile"),
        Err(error) => return eprintln!("SKIPPED: no C compiler here ({error})"),
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("WARPSMITH_TEST_CHILD", "1")
        .env("WARPSMITH_LIBCUDA", &library)
        .env(nvrtc, &library)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}", output.status);
    assert!(text.contains("1 passed"), "the child ran nothing:\n{text}");
    assert!(text.contains(end) && (end.is_empty() || text.contains("wrong 0")), "{text}");
}

fn cuda(survey: &Survey) -> Vec<Arc<dyn Device>> {
    survey.devices.iter().filter(|device| device.info().api == Api::Cuda).cloned().collect()
}

fn missing(survey: &Survey, what: &str) -> String {
    let found = survey.missing.iter().find(|entry| entry.0 == what);
    found.unwrap_or_else(|| panic!("{what} is not in {:?}", survey.missing)).1.clone()
}

fn source(text: &str) -> Source<'_> {
    Source { text, key: "key", ptx: None }
}

fn uncached() -> Options {
    Options { cache: Cache::Off, ..Options::default() }
}

fn open(survey: &Survey) -> Box<dyn Queue> {
    let device = &cuda(survey)[0];
    device.can_build().unwrap();
    device.queue().unwrap()
}

#[test]
fn without_a_driver_the_survey_says_so_plainly() {
    let test = "without_a_driver_the_survey_says_so_plainly";
    if std::env::var_os("WARPSMITH_TEST_CHILD").is_none() {
        let child = |library: &str| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", test])
                .env("WARPSMITH_TEST_CHILD", "1")
                .env("WARPSMITH_LIBCUDA", library);
            assert!(command.status().unwrap().success(), "{library}");
        };
        child("/no/such/libcuda.so.1");
        return child("/etc/hostname");
    }
    let survey = survey();
    assert!(cuda(&survey).is_empty());
    let reason = missing(&survey, "cuda");
    assert!(reason.contains("WARPSMITH_LIBCUDA") && reason.contains("/"), "{reason}");
    assert!(survey.missing.iter().all(|entry| entry.0 != "nvrtc"), "NVRTC is not missed without a driver");
}

#[test]
fn an_old_driver_is_told_what_it_lacks() {
    with("an_old_driver_is_told_what_it_lacks", &["NO_SYMBOL"], "UNUSED", "", |survey| {
        assert!(cuda(&survey).is_empty());
        let reason = missing(&survey, "cuda");
        assert!(reason.contains("has no cuLaunchKernel;") && reason.contains("470"), "{reason}");
    });
}

#[test]
fn a_code_nobody_knows_is_shown_as_it_is() {
    with("a_code_nobody_knows_is_shown_as_it_is", &["INIT_CODE=12345"], "UNUSED", "", |survey| {
        assert!(cuda(&survey).is_empty());
        let reason = missing(&survey, "cuda");
        assert!(reason.contains("cuInit returned an unknown code (12345)"), "{reason}");
    });
}

#[test]
fn a_driver_without_a_device_says_so() {
    with("a_driver_without_a_device_says_so", &["DEVICES=0"], "UNUSED", "", |survey| {
        assert!(cuda(&survey).is_empty());
        assert!(missing(&survey, "cuda").contains("shows no device"));
    });
}

#[test]
fn the_code_for_no_device_reads_the_same() {
    with("the_code_for_no_device_reads_the_same", &["INIT_CODE=100"], "UNUSED", "", |survey| {
        assert!(missing(&survey, "cuda").contains("shows no device"));
    });
}

#[test]
fn without_nvrtc_a_device_is_listed_but_cannot_build() {
    let name = "without_nvrtc_a_device_is_listed_but_cannot_build";
    with(name, &[], "UNUSED", "", |survey| {
        let device = &cuda(&survey)[0];
        match device.can_build() {
            // This machine has an NVRTC of its own.
            Ok(()) => assert!(survey.missing.iter().all(|entry| entry.0 != "nvrtc")),
            Err(error) => {
                let reason = missing(&survey, "nvrtc");
                for hint in ["pip install", "apt install", "OpenCL", "libnvrtc.so.13", "WARPSMITH_LIBNVRTC"] {
                    assert!(reason.contains(hint), "{hint}: {reason}");
                }
                assert!(error.to_string().contains(&reason), "{error}");
                let refused = device.queue().unwrap().build(&source(TEXT), &uncached()).unwrap_err();
                assert!(matches!(refused, Error::Library { name: "nvrtc", .. }), "{refused}");
            }
        }
    });
}

/// Runs the test with the fake driver and an NVRTC that cannot be opened.
fn without_nvrtc(test: &str, work: impl FnOnce(Survey)) {
    with(test, &["NO_NVRTC"], "WARPSMITH_LIBNVRTC", "contexts 0", work);
}

#[test]
fn without_nvrtc_ptx_is_translated_by_the_driver() {
    without_nvrtc("without_nvrtc_ptx_is_translated_by_the_driver", |survey| {
        let device = &cuda(&survey)[0];
        assert!(device.can_build().is_err() && device.takes_ptx());
        let reason = missing(&survey, "nvrtc");
        assert!(reason.contains("has no nvrtcVersion") && reason.contains("WARPSMITH_LIBNVRTC"), "{reason}");
        let mut queue = device.queue().unwrap();
        // The text names no kernel: what runs is the PTX.
        let carried = Source { text: "the text", key: "key", ptx: Some(TEXT) };
        let program = queue.build(&carried, &uncached()).unwrap();
        let build = queue.built(program).unwrap();
        assert!(build.from_ptx && !build.cached && build.log.is_empty());
        let add = queue.kernel(program, "add").unwrap();
        let buffer = queue.alloc(256).unwrap();
        queue.zero(buffer, 0, 256).unwrap();
        queue.launch(add, 1, 64, &[Arg::Buffer(buffer), Arg::U32(7)]).unwrap();
        let mut out = [0; 256];
        queue.read(buffer, 0, &mut out).unwrap();
        assert_eq!(out.to_vec(), 7u32.to_ne_bytes().repeat(64));
    });
}

#[test]
fn without_nvrtc_and_ptx_nothing_is_built() {
    without_nvrtc("without_nvrtc_and_ptx_nothing_is_built", |survey| {
        let mut queue = cuda(&survey)[0].queue().unwrap();
        let error = queue.build(&source(TEXT), &uncached()).unwrap_err();
        assert!(matches!(error, Error::Library { name: "nvrtc", .. }), "{error}");
        // PTX the driver does not take (an older driver, a damaged file) shows what the driver says.
        let carried = Source { text: TEXT, key: "key", ptx: Some("refuse me") };
        let error = queue.build(&carried, &uncached()).unwrap_err();
        assert!(matches!(error, Error::Compile { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("PTX") && error.contains("ptxas says no") && error.contains("218"), "{error}");
    });
}

#[test]
fn with_nvrtc_the_text_is_compiled_though_ptx_is_there() {
    with_fake("with_nvrtc_the_text_is_compiled_though_ptx_is_there", &[], |survey| {
        let mut queue = open(&survey);
        let carried = Source { text: TEXT, key: "key", ptx: Some("refuse me") };
        let program = queue.build(&carried, &uncached()).unwrap();
        assert!(!queue.built(program).unwrap().from_ptx);
    });
}

#[test]
fn a_compiler_too_new_for_the_card_leaves_it_to_ptx() {
    with_fake("a_compiler_too_new_for_the_card_leaves_it_to_ptx", &["KNOWN=100"], |survey| {
        let mut queue = cuda(&survey)[0].queue().unwrap();
        let carried = Source { text: "the text", key: "key", ptx: Some(TEXT) };
        let program = queue.build(&carried, &uncached()).unwrap();
        assert!(queue.built(program).unwrap().from_ptx);
    });
}

#[test]
fn devices_are_described_and_a_prohibited_one_left_out() {
    with_fake("devices_are_described_and_a_prohibited_one_left_out", &["DEVICES=3"], |survey| {
        let devices = cuda(&survey);
        let ids: Vec<_> = devices.iter().map(|device| device.info().id.as_str()).collect();
        assert_eq!(ids, ["cuda:0", "cuda:1"]);
        let info = devices[1].info();
        assert_eq!((info.name.as_str(), info.arch.as_str(), info.units), ("Fake 2", "sm_90", 132));
        assert_eq!(info.threads_per_unit, Some(2048));
        assert_eq!((info.memory, info.constant_memory, info.shared_memory), (1 << 30, 65536, 49152));
        assert_eq!(info.identity.as_deref(), Some("pci:0001:67:02.0"));
        assert!(info.driver.contains("CUDA 13.0") && info.is_gpu && info.same_as.is_none());
        assert!(missing(&survey, "cuda").contains("prohibited"));
    });
}

#[test]
fn a_queue_does_all_its_work_and_leaves_nothing() {
    with(
        "a_queue_does_all_its_work_and_leaves_nothing",
        &[],
        "WARPSMITH_LIBNVRTC",
        "live 0 contexts 0 flags 4",
        |survey| {
            let dir = tempfile::tempdir().unwrap();
            let mut queue = open(&survey);
            let options = Options { cache: Cache::At(dir.path().to_owned()), ..Options::default() };
            let program = queue.build(&source(TEXT), &options).unwrap();
            assert_eq!(queue.built(program).unwrap().log, "a warning");
            let program = queue.build(&source(TEXT), &options).unwrap();
            assert!(queue.built(program).unwrap().cached);
            let (add, blend) =
                (queue.kernel(program, "add").unwrap(), queue.kernel(program, "blend").unwrap());
            let resources = queue.resources(add);
            assert_eq!((resources.max_threads, resources.shared_bytes), (Some(100), Some(101)));
            assert_eq!((resources.local_bytes, resources.registers), (Some(103), Some(104)));
            assert_eq!(queue.occupancy(add, 256), Some(8));

            let (input, output) = (queue.alloc(256).unwrap(), queue.alloc(512).unwrap());
            for i in 0..50u32 {
                queue.write(input, 0, &i.to_ne_bytes().repeat(64)).unwrap();
            }
            queue.launch(add, 1, 64, &[Arg::Buffer(input), Arg::U32(1)]).unwrap();
            let args = [Arg::Buffer(output), Arg::Buffer(input), Arg::U32(3), Arg::U64(1 << 40), Arg::U32(7)];
            queue.launch(blend, 2, 32, &args).unwrap();
            let later = queue.read_later(output, 8, 16).unwrap();
            queue.zero(output, 0, 512).unwrap();
            let mut out = vec![1];
            queue.finish_later(later, &mut out).unwrap();
            assert_eq!(out, (50u64 * 3 + (1 << 40) + 7).to_ne_bytes().repeat(2));
            let mut zeros = [1; 512];
            queue.read(output, 0, &mut zeros).unwrap();
            assert_eq!(zeros, [0; 512]);

            queue.symbol(program, "table", &[1; 16]).unwrap();
            assert!(matches!(queue.symbol(program, "table", &[1; 17]), Err(Error::Usage { .. })));
            assert!(matches!(
                queue.symbol(program, "chair", &[1]),
                Err(Error::Missing { what: "symbol", .. })
            ));
            assert!(matches!(queue.kernel(program, "sub"), Err(Error::Missing { what: "kernel", .. })));
            match queue.alloc(1 << 40) {
                Err(Error::Memory { asked, free, .. }) => {
                    assert_eq!((asked, free), (1 << 40, Some(12_345_678)))
                }
                other => panic!("{other:?}"),
            }
            let (from, to) = (queue.mark().unwrap(), queue.mark().unwrap());
            queue.wait(to).unwrap();
            assert_eq!(queue.milliseconds(from, to).unwrap(), 1.5);
            let refused = queue.launch(add, 1, 2048, &[Arg::Buffer(input), Arg::U32(1)]).unwrap_err();
            assert!(refused.to_string().contains("'add' cannot be launched as 1 x 2048"), "{refused}");
            assert!(refused.to_string().contains("CUDA_ERROR_INVALID_VALUE (1)"), "{refused}");
            queue.free(output).unwrap();
            let _ = queue.read_later(input, 0, 4).unwrap();
            // Another thread ends it, where no context was ever current.
            std::thread::spawn(move || drop(queue)).join().unwrap();
        },
    );
}

#[test]
fn what_does_not_compile_or_load_shows_its_log() {
    with_fake("what_does_not_compile_or_load_shows_its_log", &[], |survey| {
        let mut queue = open(&survey);
        let error = queue.build(&source("undeclared"), &uncached()).unwrap_err().to_string();
        assert!(
            error.contains("NVRTC 13.0") && error.contains("walk.h(41)") && error.contains("1 error"),
            "{error}"
        );
        let error = queue.build(&source("refuse me"), &uncached()).unwrap_err();
        assert!(matches!(error, Error::Compile { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("ptxas says no") && error.contains("218"), "{error}");
        assert!(matches!(queue.build(&source("zero\0byte"), &uncached()), Err(Error::Usage { .. })));
    });
}

#[test]
fn a_compiler_older_than_the_card_gives_text() {
    with_fake("a_compiler_older_than_the_card_gives_text", &["KNOWN=86"], |survey| {
        let mut queue = open(&survey);
        let program = queue.build(&source(TEXT), &uncached()).unwrap();
        queue.kernel(program, "add").unwrap();
    });
}

#[test]
fn a_compiler_too_new_for_the_card_says_so() {
    with_fake("a_compiler_too_new_for_the_card_says_so", &["KNOWN=100"], |survey| {
        let error = cuda(&survey)[0].can_build().unwrap_err().to_string();
        assert!(error.contains("no longer compiles for sm_90"), "{error}");
        let mut queue = cuda(&survey)[0].queue().unwrap();
        assert!(matches!(queue.build(&source(TEXT), &uncached()), Err(Error::Library { .. })));
    });
}

#[test]
fn a_crash_in_mid_run_loses_the_device_and_a_new_queue_finds_it_well() {
    let name = "a_crash_in_mid_run_loses_the_device_and_a_new_queue_finds_it_well";
    with_fake(name, &["LAUNCHES=2"], |survey| {
        let mut queue = open(&survey);
        let program = queue.build(&source(TEXT), &uncached()).unwrap();
        let add = queue.kernel(program, "add").unwrap();
        let buffer = queue.alloc(256).unwrap();
        let args = [Arg::Buffer(buffer), Arg::U32(1)];
        queue.zero(buffer, 0, 256).unwrap();
        queue.launch(add, 1, 64, &args).unwrap();
        let later = queue.read_later(buffer, 0, 256).unwrap();
        let mark = queue.mark().unwrap();
        queue.launch(add, 1, 64, &args).unwrap();
        let error = queue.launch(add, 1, 64, &args).unwrap_err();
        assert!(matches!(error, Error::Lost { .. }), "{error}");
        assert!(error.to_string().contains("CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal"), "{error}");
        let mut out = Vec::new();
        let errors = [
            queue.finish_later(later, &mut out),
            queue.wait(mark),
            queue.write(buffer, 0, &[1]),
            queue.read(buffer, 0, &mut [0]),
            queue.zero(buffer, 0, 1),
            queue.alloc(1).map(|_| ()),
            queue.read_later(buffer, 0, 1).map(|_| ()),
            queue.build(&source(TEXT), &uncached()).map(|_| ()),
            queue.finish(),
        ];
        for error in errors.into_iter().map(Result::unwrap_err) {
            assert!(matches!(error, Error::Lost { .. }), "{error}");
        }
        assert!(out.is_empty());
        drop(queue);
        let mut queue = open(&survey);
        let program = queue.build(&source(TEXT), &uncached()).unwrap();
        let add = queue.kernel(program, "add").unwrap();
        let buffer = queue.alloc(256).unwrap();
        queue.launch(add, 1, 64, &[Arg::Buffer(buffer), Arg::U32(1)]).unwrap();
        queue.finish().unwrap();
    });
}

#[test]
fn an_unknown_code_while_waiting_is_an_error_and_no_bytes() {
    with(
        "an_unknown_code_while_waiting_is_an_error_and_no_bytes",
        &["EVENT_CODE=12345"],
        "WARPSMITH_LIBNVRTC",
        "",
        |survey| {
            let mut queue = open(&survey);
            let buffer = queue.alloc(8).unwrap();
            let later = queue.read_later(buffer, 0, 8).unwrap();
            let mut out = vec![1, 2];
            let error = queue.finish_later(later, &mut out).unwrap_err();
            assert!(
                error.to_string().contains("cuEventSynchronize returned an unknown code (12345)"),
                "{error}"
            );
            assert!(out.is_empty());
        },
    );
}

//! NVIDIA's OpenCL where nothing registers it.
//!
//! Driver-only machines and containers often have libnvidia-opencl.so.1 but no ICD file that leads a loader to
//! it. The survey says so with the lasting remedy. For this process it also points the loader there by an
//! environment variable, but only where that is sound: see [`is_alone`].

use std::path::Path;

use crate::dylib;

const LIBRARY: &str = "libnvidia-opencl.so.1";
const VENDORS: &str = "/etc/OpenCL/vendors";
const REMEDY: &str = "create /etc/OpenCL/vendors/nvidia.icd with the one line libnvidia-opencl.so.1 (as root: mkdir -p \
     /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd)";

/// Looks for an unregistered NVIDIA library, reports it and makes it visible if that can be done.
/// Only before the process's first OpenCL call does this have an effect; loaders read their files once.
pub(crate) fn prepare(missing: &mut Vec<(String, String)>) {
    let user_decided = ["OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH", "OPENCL_DYLIB_PATH"]
        .into_iter()
        .any(|name| std::env::var_os(name).is_some());
    if !cfg!(target_os = "linux") || user_decided {
        return;
    }
    let registered = registered(Path::new(VENDORS));
    if registered.iter().any(|content| content.contains("nvidia-opencl")) {
        return;
    }
    // SAFETY: This is a part of NVIDIA's driver, opened by the name under which a loader would open it.
    let Ok(nvidia) = (unsafe { dylib::open(LIBRARY) }) else { return };
    // SAFETY: This is the system's OpenCL loader.
    let has_loader = unsafe { dylib::open("libOpenCL.so.1") }.is_ok();
    // SAFETY: The symbol is looked at and not called.
    let stands_alone = unsafe { nvidia.get::<*const ()>("clGetPlatformIDs") }.is_ok();
    let variables: &[&str] = match (has_loader, stands_alone) {
        // Khronos's loader adds the first to its files. ocl-icd knows only the second, which replaces its files:
        // no loss where there are none.
        (true, _) if registered.is_empty() => &["OCL_ICD_FILENAMES", "OCL_ICD_VENDORS"],
        (true, _) => &["OCL_ICD_FILENAMES"],
        (false, true) => &["OPENCL_DYLIB_PATH"],
        (false, false) => &[],
    };
    let fix = if has_loader { REMEDY.to_owned() } else { format!("install ocl-icd-libopencl1 and {REMEDY}") };
    let tried = !variables.is_empty() && is_alone();
    if tried {
        for name in variables {
            // SAFETY: This is the only thread, so nobody reads the environment meanwhile.
            unsafe { std::env::set_var(name, LIBRARY) };
        }
    }
    let now = if tried { "it is tried for this run" } else { "it is not used" };
    missing.push((
        "opencl".to_owned(),
        format!("NVIDIA's OpenCL ({LIBRARY}) is installed but not registered in {VENDORS}; {now}; to fix it, {fix}"),
    ));
}

/// The contents of all ICD files.
fn registered(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok());
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "icd"));
    paths.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

/// Whether this thread is the process's only one. The environment may be changed only while no other thread
/// reads it, and C code reads it without Rust's lock; with one thread there is nobody to race with.
fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_icd_files_count_as_registered() {
        let dir = tempfile::tempdir().unwrap();
        assert!(registered(&dir.path().join("absent")).is_empty());
        std::fs::write(dir.path().join("note.txt"), LIBRARY).unwrap();
        std::fs::write(dir.path().join("a.icd"), LIBRARY).unwrap();
        assert_eq!(registered(dir.path()), [LIBRARY]);
    }
}

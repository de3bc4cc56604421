//! NVRTC, CUDA's compiler as a library: where it is, what it can compile for, compiling.
//!
//! It comes with the CUDA toolkit or NVIDIA's Python packages, not with the driver. Code for the very device
//! (CUBIN) is asked for where NVRTC knows it, since text of a newer toolkit (PTX) is refused by an older
//! driver; PTX of the newest target it knows is for cards newer than the toolkit.

use std::ffi::{CString, OsString, c_char, c_int};
use std::path::{Path, PathBuf};

use crate::dylib::{self, Status, table};
use crate::error::Unusable;

type Handle = usize;

table! {
    /// NVRTC's functions; all are in versions from 11.2 on.
    struct Functions {
        version = "nvrtcVersion"(major: *mut c_int, minor: *mut c_int);
        target_count = "nvrtcGetNumSupportedArchs"(count: *mut c_int);
        targets = "nvrtcGetSupportedArchs"(list: *mut c_int);
        create = "nvrtcCreateProgram"(program: *mut Handle, text: *const c_char, name: *const c_char, headers: c_int, sources: *const *const c_char, names: *const *const c_char);
        destroy = "nvrtcDestroyProgram"(program: *mut Handle);
        compile = "nvrtcCompileProgram"(program: Handle, count: c_int, options: *const *const c_char);
        log_size = "nvrtcGetProgramLogSize"(program: Handle, bytes: *mut usize);
        log = "nvrtcGetProgramLog"(program: Handle, log: *mut c_char);
        ptx_size = "nvrtcGetPTXSize"(program: Handle, bytes: *mut usize);
        ptx = "nvrtcGetPTX"(program: Handle, ptx: *mut c_char);
        cubin_size = "nvrtcGetCUBINSize"(program: Handle, bytes: *mut usize);
        cubin = "nvrtcGetCUBIN"(program: Handle, cubin: *mut c_char);
    }
}

/// NVRTC's code for text that does not compile.
const COMPILATION: c_int = 6;

/// How to get it.
const REMEDY: &str = "install it with 'pip install nvidia-cuda-nvrtc' (CUDA 13; nvidia-cuda-nvrtc-cu12 for CUDA 12), \
                      or your distribution's CUDA toolkit ('apt install nvidia-cuda-toolkit'), or name the library in \
                      WARPSMITH_LIBNVRTC; or use the card through NVIDIA's OpenCL, which needs no NVRTC";

/// What to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// Machine code of this device, `sm_90`.
    Cubin(u32),
    /// Text of an older target, which the driver translates.
    Ptx(u32),
}

/// An open NVRTC.
pub(crate) struct Nvrtc {
    functions: Functions,
    version: (c_int, c_int),
    /// Compute capabilities it knows, 90 for 9.0.
    known: Vec<u32>,
}

/// What compiling gave.
pub(crate) enum Outcome {
    /// The image and the compiler's warnings.
    Image(Vec<u8>, String),
    /// The whole log.
    Refused(String),
}

impl Nvrtc {
    /// Opens NVRTC, first the version of the driver's CUDA `major`. The error says what was tried and what to do.
    pub fn open(major: c_int) -> Result<Nvrtc, Unusable> {
        let named = std::env::var_os("WARPSMITH_LIBNVRTC").filter(|name| !name.is_empty());
        let names = names(major);
        let mut reasons = Vec::new();
        let mut attempt = |path: OsString| match Nvrtc::open_at(&path) {
            Ok(nvrtc) => Some(nvrtc),
            Err(reason) => {
                // That a file is not there is no news beyond its first name.
                if reasons.is_empty() || Path::new(&path).exists() {
                    reasons.push(reason.to_string());
                }
                None
            }
        };
        let found = match &named {
            Some(name) => attempt(name.clone()),
            None => names.iter().find_map(|name| attempt(name.into())).or_else(|| {
                let folders = folders();
                let paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
                paths.filter(|path| path.exists()).find_map(|path| attempt(path.into()))
            }),
        };
        found.ok_or_else(|| {
            let reasons = reasons.join("; ");
            Unusable(match named {
                Some(_) => format!("{reasons}; WARPSMITH_LIBNVRTC names this library: correct it or unset it"),
                None => format!(
                    "CUDA's compiler NVRTC cannot be opened (tried {} by name and in the usual CUDA and Python folders: \
                     {reasons}); {REMEDY}",
                    names.join(", "),
                ),
            })
        })
    }

    fn open_at(path: &OsString) -> Result<Nvrtc, Unusable> {
        preload(Path::new(path));
        // SAFETY: This is NVIDIA's compiler, or what the user put in its place.
        let library = unsafe { dylib::open(path) }?;
        let shown = path.to_string_lossy();
        // SAFETY: The table is that of nvrtc.h, from version 11.2 on.
        let functions = unsafe { Functions::resolve(library) }.map_err(|lacking| {
            Unusable(format!("{shown} has no {}; NVRTC 11.2 or later is needed", lacking.join(", ")))
        })?;
        let failed = |status: Status| Unusable(format!("{shown}: {} returned {}", status.call, status.code));
        let (mut version, mut count) = ((0, 0), 0);
        // SAFETY: The pointers are to live integers.
        unsafe { functions.version(&mut version.0, &mut version.1) }.map_err(failed)?;
        // SAFETY: As above.
        unsafe { functions.target_count(&mut count) }.map_err(failed)?;
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: The list has as many entries as the library said it has targets.
        unsafe { functions.targets(known.as_mut_ptr()) }.map_err(failed)?;
        let known = known.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect();
        Ok(Nvrtc { functions, version, known })
    }

    /// `NVRTC 13.0`.
    pub fn name(&self) -> String {
        format!("NVRTC {}.{}", self.version.0, self.version.1)
    }

    /// What to compile for, given a compute capability.
    pub fn target(&self, capability: u32) -> Result<Architecture, Unusable> {
        if self.known.contains(&capability) {
            return Ok(Architecture::Cubin(capability));
        }
        let older = self.known.iter().copied().filter(|arch| *arch < capability).max();
        older.map(Architecture::Ptx).ok_or_else(|| {
            Unusable(format!(
                "{} no longer compiles for sm_{capability}; install an older one \
                 ('pip install nvidia-cuda-nvrtc-cu12') and name it in WARPSMITH_LIBNVRTC, or use the card \
                 through NVIDIA's OpenCL",
                self.name()
            ))
        })
    }

    /// The options a target means.
    pub fn options(target: Architecture, extra: &[String]) -> Vec<String> {
        let arch = match target {
            Architecture::Cubin(arch) => format!("--gpu-architecture=sm_{arch}"),
            Architecture::Ptx(arch) => format!("--gpu-architecture=compute_{arch}"),
        };
        [arch, "-default-device".to_owned()].into_iter().chain(extra.iter().cloned()).collect()
    }

    /// Compiles. The error is what NVRTC said when it failed for another reason than the text.
    pub fn compile(&self, text: &str, target: Architecture, options: &[String]) -> Result<Outcome, Unusable> {
        let fail =
            |status: Status| Unusable(format!("{}: {} returned {}", self.name(), status.call, status.code));
        let terminated = |text: &str| {
            CString::new(text)
                .map_err(|_| Unusable("the kernel text or an option holds a zero byte".to_owned()))
        };
        let text = terminated(text)?;
        let options = options.iter().map(|option| terminated(option)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = Unit { functions: &self.functions, handle: 0 };
        let (none, name) = (std::ptr::null(), c"kernel.cu");
        // SAFETY: The strings end in zero and live through the call; there are no headers.
        unsafe { self.functions.create(&mut program.handle, text.as_ptr(), name.as_ptr(), 0, none, none) }
            .map_err(fail)?;
        let count = pointers.len() as c_int;
        // SAFETY: The program is live, and so are `count` strings that end in zero.
        let compiled = unsafe { self.functions.compile(program.handle, count, pointers.as_ptr()) };
        // SAFETY: `fetch` gives each pair of functions what their manual asks for: the program, and room.
        let log = unsafe { program.fetch(Functions::log_size, Functions::log) }.unwrap_or_default();
        let log = String::from_utf8_lossy(&log).trim_end_matches(['\0', '\n']).to_owned();
        match compiled {
            Err(status) if status.code == COMPILATION => return Ok(Outcome::Refused(log)),
            // An option it does not know, or its built-ins library missing: the log says which.
            Err(status) if !log.is_empty() => {
                return Ok(Outcome::Refused(format!("{log}\n({})", fail(status))));
            }
            Err(status) => return Err(fail(status)),
            Ok(()) => {}
        }
        let image = match target {
            // SAFETY: As above; the program compiled for a real target.
            Architecture::Cubin(_) => unsafe { program.fetch(Functions::cubin_size, Functions::cubin) },
            // SAFETY: As above.
            Architecture::Ptx(_) => unsafe { program.fetch(Functions::ptx_size, Functions::ptx) },
        };
        Ok(Outcome::Image(image.map_err(fail)?, log))
    }
}

/// A program under compilation, destroyed on drop.
struct Unit<'a> {
    functions: &'a Functions,
    handle: Handle,
}

type Size = unsafe fn(&Functions, Handle, *mut usize) -> Result<(), Status>;
type Fetch = unsafe fn(&Functions, Handle, *mut c_char) -> Result<(), Status>;

impl Unit<'_> {
    /// The bytes a pair of functions hands out.
    ///
    /// # Safety
    ///
    /// `fetch` writes as many bytes as `size` says, and the program is in a state both allow.
    unsafe fn fetch(&self, size: Size, fetch: Fetch) -> Result<Vec<u8>, Status> {
        let mut bytes = 0;
        // SAFETY: The pointer is to a live integer; the rest is the caller's promise.
        unsafe { size(self.functions, self.handle, &mut bytes)? };
        let mut data = vec![0u8; bytes];
        // SAFETY: The buffer has the size asked for; the rest is the caller's promise.
        unsafe { fetch(self.functions, self.handle, data.as_mut_ptr().cast())? };
        Ok(data)
    }
}

impl Drop for Unit<'_> {
    fn drop(&mut self) {
        if self.handle != 0 {
            // SAFETY: The handle is live, and nobody uses it after this.
            let _ = unsafe { self.functions.destroy(&mut self.handle) };
        }
    }
}

/// The library's names, the driver's own CUDA version first, older ones next (newer machine code may be refused
/// by an older driver), newer ones last.
fn names(major: c_int) -> Vec<&'static str> {
    const UNIX: [(c_int, &str); 3] =
        [(13, "libnvrtc.so.13"), (12, "libnvrtc.so.12"), (11, "libnvrtc.so.11.2")];
    const WINDOWS: [(c_int, &str); 3] =
        [(13, "nvrtc64_130_0.dll"), (12, "nvrtc64_120_0.dll"), (11, "nvrtc64_112_0.dll")];
    let mut all = if cfg!(windows) { WINDOWS } else { UNIX };
    all.sort_by_key(|(version, _)| (*version > major, if *version > major { *version } else { -version }));
    let unversioned = if cfg!(windows) { None } else { Some("libnvrtc.so") };
    all.into_iter().map(|(_, name)| name).chain(unversioned).collect()
}

/// Opens the built-ins library beside a library named by path. NVRTC asks for it by name alone, and without
/// `LD_LIBRARY_PATH` finds it only when it is open already (seen with 13.0: code 7).
fn preload(path: &Path) {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return };
    for entry in list(folder) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("libnvrtc-builtins.so.") {
            // SAFETY: It is part of NVRTC. Where it does not open, compiling says so.
            let _ = unsafe { dylib::open(&entry) };
        }
    }
}

/// Where toolkits and Python packages put libraries, for when the system's loader does not know them.
fn folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let mut toolkits: Vec<_> = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].into_iter().filter_map(set).collect();
    toolkits.extend(["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"].map(PathBuf::from));
    let numbered = list(Path::new("/usr/local")).into_iter().rev();
    toolkits.extend(numbered.filter(|path| path.to_string_lossy().starts_with("/usr/local/cuda-")));
    for toolkit in toolkits {
        found.extend(["lib64", "lib", "bin"].map(|sub| toolkit.join(sub)));
        found.extend(list(&toolkit.join("targets")).into_iter().map(|target| target.join("lib")));
    }
    let environments = [set("VIRTUAL_ENV"), set("CONDA_PREFIX"), set("HOME").map(|home| home.join(".local"))];
    let systems = ["/usr/local", "/usr"].map(PathBuf::from);
    for prefix in environments.into_iter().flatten().chain(systems) {
        found.push(prefix.join("lib"));
        for python in list(&prefix.join("lib")) {
            for packages in ["site-packages", "dist-packages"] {
                // The first is the layout of the packages for CUDA 13, the second that of 11 and 12.
                found.extend(
                    ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"].map(|sub| python.join(packages).join(sub)),
                );
            }
        }
    }
    found.retain(|folder| folder.is_dir());
    found
}

/// A folder's entries in order of name; nothing where it cannot be read.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_own_version_is_tried_first_and_newer_ones_last() {
        if cfg!(unix) {
            let order = |major| names(major).join(" ");
            assert_eq!(order(13), "libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2 libnvrtc.so");
            assert_eq!(order(12), "libnvrtc.so.12 libnvrtc.so.11.2 libnvrtc.so.13 libnvrtc.so");
            assert_eq!(order(14), "libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2 libnvrtc.so");
        }
    }

    #[test]
    fn real_nvrtc_compiles_and_shows_its_log() {
        let nvrtc = match Nvrtc::open(13) {
            Ok(nvrtc) => nvrtc,
            Err(reason) => return eprintln!("SKIPPED, no NVRTC here: {reason}"),
        };
        let text =
            "extern \"C\" __global__ void k(unsigned *p, unsigned x) { int unused; p[threadIdx.x] += x; }";
        let newest = *nvrtc.known.iter().max().unwrap();
        assert_eq!(nvrtc.target(newest + 1).ok(), Some(Architecture::Ptx(newest)));
        assert!(nvrtc.target(20).unwrap_err().to_string().contains("no longer compiles for sm_20"));
        for (target, start) in
            [(nvrtc.target(newest).unwrap(), &b"\x7fELF"[..]), (Architecture::Ptx(newest), b"//")]
        {
            match nvrtc.compile(text, target, &Nvrtc::options(target, &[])).unwrap() {
                Outcome::Image(image, log) => {
                    assert!(image.windows(start.len()).any(|w| w == start), "{target:?}");
                    assert!(log.contains("unused"), "warnings are kept: {log}");
                }
                Outcome::Refused(log) => panic!("{log}"),
            }
        }
        let target = Architecture::Cubin(newest);
        match nvrtc.compile("#line 7 \"walk.h\"\nnonsense", target, &Nvrtc::options(target, &[])).unwrap() {
            Outcome::Refused(log) => assert!(log.contains("walk.h(7)"), "{log}"),
            Outcome::Image(..) => panic!("nonsense compiled"),
        }
    }
}

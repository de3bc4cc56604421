//! Configuration: `warpsmith.toml` in the user's configuration folder and in the working folder, and the environment.
//!
//! Later sources take precedence: the user's file, the working folder's, the environment, the command line. A file with an unknown
//! setting is refused, with its line: a default that is not what the user believes it to be can put keys in the wrong place. For the
//! same reason a file that others may write is refused, and one that belongs to another user is not read: the working folder may be
//! `/tmp`. No command to run can be set here.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;
use toml::{Spanned, Value};
use warpsmith_device::Selector;
use warpsmith_files::{Settings, read_settings};
use warpsmith_text::toml_mistake;

use crate::colour::Colour;
use crate::exit::Failure;
use crate::human::{MAX_THREADS, Whole, whole};
use crate::redact::secret_kind;
use crate::stderr::warn;

/// Name of the configuration file.
pub const FILE: &str = "warpsmith.toml";

/// Largest configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 16;

/// Source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Not set.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Environment(name) => write!(f, "${name}"),
        }
    }
}

/// A setting and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value; none if it is not set.
    pub value: Option<T>,
    /// Its source.
    pub source: Source,
}

impl<T> Setting<T> {
    const NONE: Setting<T> = Setting { value: None, source: Source::Default };

    fn set(&mut self, value: Option<T>, source: &Source) {
        if let Some(value) = value {
            *self = Setting { value: Some(value), source: source.clone() };
        }
    }
}

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Default of `--device`.
    pub device: Setting<Vec<Selector>>,
    /// Default of `--output`.
    pub output: Setting<PathBuf>,
    /// Default of `--color`.
    pub color: Setting<Colour>,
    /// Default of `--launch-ms`.
    pub launch_ms: Setting<u32>,
    /// Default of `--threads`.
    pub threads: Setting<usize>,
    /// Files that were looked for, and their states.
    pub files: Vec<(PathBuf, FileState)>,
}

/// Whether a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It was read.
    Read,
    /// It does not exist.
    Missing,
    /// It belongs to another user and was not read.
    Foreign,
}

/// Environment variables, in the order of the settings.
pub const VARIABLES: [&str; 5] =
    ["WARPSMITH_DEVICE", "WARPSMITH_OUTPUT", "WARPSMITH_COLOR", "WARPSMITH_LAUNCH_MS", "WARPSMITH_THREADS"];

/// The settings of a file. Their types are checked one by one, so that a message can say what is allowed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    device: Option<Spanned<Value>>,
    output: Option<Spanned<Value>>,
    color: Option<Spanned<Value>>,
    launch_ms: Option<Spanned<Value>>,
    threads: Option<Spanned<Value>>,
}

/// Reads a string of a file.
fn string(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("expected text in quotes, not {}", named(&other))),
    }
}

/// Reads a string of a file, or a list of them.
fn strings(value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(all) => all.into_iter().map(string).collect(),
        one => Ok(vec![string(one)?]),
    }
}

/// Reads a whole number of a file.
fn number<T: Whole>(value: &Value, range: RangeInclusive<T>) -> Result<T, String> {
    let text = named(value);
    whole(range)(&text).map_err(|why| format!("{why}, not {text}"))
}

/// Describes a value: a number itself, or the type of anything else.
fn named(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        other => format!("a value of type {}", other.type_str()),
    }
}

fn parse_devices(texts: &[String]) -> Result<Vec<Selector>, String> {
    texts.iter().map(|text| text.trim().parse::<Selector>().map_err(|error| error.to_string())).collect()
}

fn parse_output(text: &str) -> Result<PathBuf, String> {
    if let Some(what) = secret_kind(text) {
        return Err(format!("the name has {what}; give another name"));
    }
    match text {
        "" | "-" => Err("give the name of a file".to_owned()),
        _ => Ok(PathBuf::from(text)),
    }
}

/// Valid durations of a launch in milliseconds.
pub const LAUNCH_MS: RangeInclusive<u32> = 1..=1000;

const THREADS: RangeInclusive<usize> = 1..=MAX_THREADS;

impl Config {
    const EMPTY: Config = Config {
        device: Setting::NONE,
        output: Setting::NONE,
        color: Setting::NONE,
        launch_ms: Setting::NONE,
        threads: Setting::NONE,
        files: Vec::new(),
    };

    /// Adds the settings of a file; the error has the line.
    fn read(&mut self, path: &Path, text: &str) -> Result<(), String> {
        let source = Source::File(path.to_owned());
        let line_of = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        let written: Written = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(span.start));
            format!("line {line}: {}", toml_mistake(error.message()))
        })?;
        /// Parses a value; the error has its line.
        fn checked<T, U>(
            value: Option<Spanned<T>>,
            line_of: &dyn Fn(usize) -> usize,
            parse: impl FnOnce(T) -> Result<U, String>,
        ) -> Result<Option<U>, String> {
            let Some(value) = value else { return Ok(None) };
            let line = line_of(value.span().start);
            parse(value.into_inner()).map(Some).map_err(|why| format!("line {line}: {why}"))
        }
        let device = checked(written.device, &line_of, |value| {
            strings(value).and_then(|texts| parse_devices(&texts))
        })?;
        // A name in a file is relative to the folder the file is in, whoever reads it from where.
        let folder = path.parent().unwrap_or(Path::new("."));
        let output = checked(written.output, &line_of, |value| {
            string(value).and_then(|text| parse_output(&text)).map(|name| folder.join(name))
        })?;
        let color =
            checked(written.color, &line_of, |value| string(value).and_then(|text| Colour::parse(&text)))?;
        let launch_ms = checked(written.launch_ms, &line_of, |value| number(&value, LAUNCH_MS))?;
        let threads = checked(written.threads, &line_of, |value| number(&value, THREADS))?;
        self.device.set(device, &source);
        self.output.set(output, &source);
        self.color.set(color, &source);
        self.launch_ms.set(launch_ms, &source);
        self.threads.set(threads, &source);
        Ok(())
    }

    /// Adds the settings of the environment; an empty variable counts as not set.
    fn read_environment(&mut self, get: &dyn Fn(&str) -> Option<OsString>) -> Result<(), String> {
        let texts = VARIABLES.map(|name| {
            let value = get(name).filter(|value| !value.is_empty())?;
            Some(value.into_string().map_err(|_| format!("${name}: it is not text (UTF-8)")))
        });
        let [device, output, color, launch_ms, threads] = texts.map(Option::transpose);
        let named = |at: usize| move |why: String| format!("${}: {why}", VARIABLES[at]);
        let source = |at: usize| Source::Environment(VARIABLES[at]);
        let list = |text: String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let device = device?.map(|text| parse_devices(&list(text))).transpose().map_err(named(0))?;
        self.device.set(device, &source(0));
        self.output.set(output?.map(|text| parse_output(&text)).transpose().map_err(named(1))?, &source(1));
        self.color.set(color?.map(|text| Colour::parse(&text)).transpose().map_err(named(2))?, &source(2));
        let launch_ms = launch_ms?.map(|text| whole(LAUNCH_MS)(&text)).transpose().map_err(named(3))?;
        self.launch_ms.set(launch_ms, &source(3));
        let threads = threads?.map(|text| whole(THREADS)(&text)).transpose().map_err(named(4))?;
        self.threads.set(threads, &source(4));
        Ok(())
    }

    /// Reads all settings, or fails with the first error.
    fn load() -> Result<Config, Failure> {
        let mut config = Config::EMPTY;
        let folder = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let folder = folder.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
        let own = folder.map(|folder| folder.join("warpsmith").join(FILE));
        for path in own.into_iter().chain([PathBuf::from(FILE)]) {
            let (state, text) = read_file(&path)?;
            config.files.push((path.clone(), state));
            let Some(text) = text else { continue };
            config.read(&path, &text).map_err(|why| {
                Failure::Usage(format!(
                    "{}, {why}. It may hold device, output, color, launch_ms and threads; docs/reference.md explains them",
                    path.display()
                ))
            })?;
        }
        config.read_environment(&|name| std::env::var_os(name)).map_err(Failure::Usage)?;
        Ok(config)
    }
}

/// Reads a file and returns its state.
fn read_file(path: &Path) -> Result<(FileState, Option<String>), Failure> {
    let about = path.display();
    let read = read_settings(path, MAX_BYTES).map_err(|error| match error {
        warpsmith_files::Error::Io { .. } => Failure::of("", &error),
        unsafe_file @ warpsmith_files::Error::Unsafe { .. } => {
            Failure::Usage(format!("{unsafe_file}. It says where keys go, so only you may write it"))
        }
        error => Failure::Usage(error.to_string()),
    });
    match read? {
        Settings::Missing => Ok((FileState::Missing, None)),
        Settings::Foreign(owner) => {
            warn(&format!(
                "{about} belongs to another user (uid {owner}) and is not read; continuing without it"
            ));
            Ok((FileState::Foreign, None))
        }
        Settings::Read(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok((FileState::Read, Some(text))),
            Err(_) => Err(Failure::Usage(format!("{about}: it is not text (UTF-8)"))),
        },
    }
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Loads the configuration. To be called before the command line is parsed, which shows and uses it.
pub fn load() -> Result<(), Failure> {
    let config = Config::load()?;
    CONFIG.get_or_init(|| config);
    Ok(())
}

/// Returns the configuration; empty before [`load`].
pub fn get() -> &'static Config {
    CONFIG.get_or_init(|| Config::EMPTY)
}

/// Returns the default of `--output` for the command line's parser.
pub fn output() -> Option<&'static OsStr> {
    get().output.value.as_deref().map(Path::as_os_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let mut config = Config::EMPTY;
        config.read(Path::new("folder/warpsmith.toml"), text).map(|()| config)
    }

    #[test]
    fn what_is_said_later_counts_and_is_known_by_its_source() {
        let mut config =
            read("device = ['cpu', 'cuda:1']\noutput = 'keys.txt'\ncolor = 'never'\nthreads = 3\n").unwrap();
        assert_eq!(config.device.value, Some(vec!["cpu".parse().unwrap(), "cuda:1".parse().unwrap()]));
        assert_eq!(config.output.value, Some(PathBuf::from("folder/keys.txt")));
        assert_eq!((config.color.value, config.threads.value), (Some(Colour::Never), Some(3)));
        assert_eq!(config.launch_ms, Setting::NONE);
        config.read(Path::new("warpsmith.toml"), "device = 'all'").unwrap();
        assert_eq!(config.device.source, Source::File("warpsmith.toml".into()));
        let set = |name: &str| match name {
            "WARPSMITH_DEVICE" => Some("opencl,cpu".into()),
            "WARPSMITH_LAUNCH_MS" => Some("10".into()),
            "WARPSMITH_THREADS" => Some("2".into()),
            "WARPSMITH_OUTPUT" => Some("".into()),
            _ => None,
        };
        config.read_environment(&set).unwrap();
        assert_eq!(config.device.value, Some(vec!["opencl".parse().unwrap(), "cpu".parse().unwrap()]));
        assert_eq!(
            config.launch_ms,
            Setting { value: Some(10), source: Source::Environment("WARPSMITH_LAUNCH_MS") }
        );
        assert_eq!(config.threads.value, Some(2));
        assert_eq!(config.output.source.to_string(), "folder/warpsmith.toml");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let cases = [
            (
                "# a comment\ndevices = 'cpu'\n",
                "line 2",
                "there is no devices; expected one of device, output",
            ),
            ("device = 'gpu'", "line 1", "'gpu' is no device"),
            ("device = 5", "line 1", "expected text in quotes, not 5"),
            ("device = ['cpu', 5]", "line 1", "expected text in quotes, not 5"),
            ("color = 'never'\ncolor = 'auto'\n", "line 2", "given twice"),
            ("\n\nlaunch_ms = 0", "line 3", "expected a whole number from 1 to 1000, not 0"),
            ("launch_ms = 'ten'", "line 1", "expected a whole number from 1 to 1000"),
            ("launch_ms = -1", "line 1", "expected a whole number from 1 to 1000, not -1"),
            ("threads = 5000", "line 1", "from 1 to 4096, not 5000"),
            ("color = 'red'", "line 1", "auto, always or never"),
            ("output = ''", "line 1", "name of a file"),
            ("notify = 'rm'", "line 1", "notify"),
            ("output = [", "line 1", "not TOML"),
            ("output = keys.txt", "line 1", "not TOML"),
        ];
        for (text, line, why) in cases {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(line) && error.contains(why), "{text}: {error}");
        }
        let wrong = |_: &str| Some(OsString::from("gpu"));
        assert!(
            Config::EMPTY.clone().read_environment(&wrong).unwrap_err().starts_with("$WARPSMITH_DEVICE: ")
        );
    }
}

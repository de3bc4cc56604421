//! Writes a joined text to standard output: `emit [ptx=0] [group=256] [block=128] [blocks=4] [table=global] [shared=0]
//! [count=0] [inline=0] [ranges=2]
//! [program=orbit|field|moves|salts|x|account|contract|hash160|script|uncompressed|taproot|walk|scan-walk|scan-test|scan-taproot]`, for the orbit walk `[unroll=1]
//! [filter=near|far] [stage=walk|words]`, for points and salts `[set=1] [terms=1] [score=zeros|leading-zeros|leading|parts [each=1]]`, for
//! taproot `[bits=24]`, for the walk `[of=account|...]`, for scans `[y=1] [forms=compressed,uncompressed,script,account,x] [fuse=16]`, for salts `[guarded=1] [create=1] [byte=52]`.
//! `emit pir=cutoffs|regular|pairs|rest [size=40] [w=32768] [c=55974] [block=128] [blocks=4]` is a text of private retrieval.
//! `emit to=FOLDER` writes every text that a release ships as PTX there, each named by its hash.

use std::{env, fs};

use warpsmith_kernel::digest_filter::{DigestTest, ScoreTest, Way};
use warpsmith_kernel::pir::{self, Part};
use warpsmith_kernel::points::Digest;
use warpsmith_kernel::salts::Stages;
use warpsmith_kernel::{Program, Spec, Stage, TablePlace, XTest, join, join_field, moves, scan, shipped};

fn main() {
    let mut spec = Spec::default();
    let mut filter = DigestTest { ranges: 1, ..DigestTest::default() };
    let mut stages = Stages { guarded: false, create: false, byte: 52 };
    let mut program = "orbit".to_owned();
    let mut bits = 24;
    let mut forms = vec![scan::Form::Compressed];
    let mut of = "hash160".to_owned();
    let (mut fuse, mut keep_y) = (None, false);
    let mut retrieval = None;
    let mut shape = pir::HintTask { entry_size: 40, block_size: 32_768, blocks: 55_974, packed: true };
    for argument in env::args().skip(1) {
        let (name, value) = argument.split_once('=').expect("name=value");
        let number = || value.parse::<u32>().expect("a number");
        match name {
            "ptx" => spec.ptx = number() != 0,
            "group" => spec.group = number(),
            "block" => spec.block = number(),
            "blocks" => spec.blocks = number(),
            "table" => spec.table = if value == "global" { TablePlace::Global } else { TablePlace::Constant },
            "shared" => spec.shared_inversion = number() != 0,
            "count" => spec.count_carries = number() != 0,
            "unroll" => spec.unroll_signs = number() != 0,
            "ranges" => {
                filter.ranges = number();
                spec.filter = XTest::Range { count: number() };
            }
            "filter" => spec.filter = XTest::Set { near: value == "near" },
            "inline" => spec.inline = number() != 0,
            "stage" if value == "walk" => spec.stage = Stage::Walk,
            "stage" if value == "words" => spec.stage = Stage::Words,
            "program" => program = value.to_owned(),
            "set" => filter.set = number() != 0,
            "terms" => filter.terms = number() != 0,
            "score" => {
                let way = match value {
                    "zeros" => Way::Zeros,
                    "leading-zeros" => Way::LeadingZeros,
                    "leading" => Way::Leading,
                    _ => Way::Parts,
                };
                filter.score = Some(ScoreTest { way, each: false });
            }
            "each" => filter.score = filter.score.map(|score| ScoreTest { each: number() != 0, ..score }),
            "guarded" => stages.guarded = number() != 0,
            "create" => stages.create = number() != 0,
            "byte" => stages.byte = number(),
            "bits" => bits = number(),
            "of" => of = value.to_owned(),
            "y" => keep_y = number() != 0,
            "fuse" => fuse = Some(scan::ScanTest::Fuse { bits: number(), many: false }),
            "forms" => forms = value.split(',').map(form).collect(),
            "pir" if value == "cutoffs" => retrieval = Some(Part::Cutoffs),
            "pir" if value == "regular" => retrieval = Some(Part::Regular),
            "pir" if value == "pairs" => retrieval = Some(Part::Pairs),
            "pir" if value == "rest" => retrieval = Some(Part::Rest),
            "size" => shape.entry_size = number(),
            "w" => shape.block_size = number(),
            "c" => shape.blocks = number(),
            "to" => {
                fs::create_dir_all(value).expect("the folder can be made");
                for source in shipped() {
                    let path = format!("{value}/{:032x}.cu", source.hash);
                    fs::write(path, source.text).expect("the folder can be written");
                }
                return;
            }
            _ => panic!("what is {argument}?"),
        }
    }
    if let Some(part) = retrieval {
        shape.packed = shape.block_size.is_power_of_two() && shape.block_size <= 1 << 16;
        let launch = pir::Launch { block: spec.block, blocks: spec.blocks, inline: spec.inline };
        print!("{}", pir::join(&shape, part, &launch).text);
        return;
    }
    let digest = |name: &str| match name {
        "x" => Some(Digest::X),
        "account" => Some(Digest::Account),
        "contract" => Some(Digest::Contract),
        "hash160" => Some(Digest::Hash160),
        "script" => Some(Digest::ScriptHash160),
        "uncompressed" => Some(Digest::Hash160Uncompressed),
        "taproot" => Some(Digest::Taproot { bits }),
        _ => None,
    };
    spec.program = match program.as_str() {
        name if digest(name).is_some() => {
            Program::Points { digest: digest(name).expect("just seen"), filter }
        }
        "orbit" | "field" | "moves" => Program::Orbit,
        "walk" => Program::PointsWalk { digest: digest(&of).unwrap_or_else(|| panic!("what is {of}?")) },
        "scan-walk" => Program::Scan(scan::ScanPart::Walk { keep_y }),
        "scan-taproot" => {
            let filter = fuse.unwrap_or(scan::ScanTest::Top(filter));
            Program::Scan(scan::ScanPart::Taproot { filter, bits })
        }
        "scan-test" => {
            let filter = fuse.unwrap_or(scan::ScanTest::Top(filter));
            Program::Scan(scan::ScanPart::Test { forms: scan::Forms::of(&forms), filter, keep_y })
        }
        "salts" => Program::Salts { stages, filter },
        _ => panic!("what is {program}?"),
    };
    let source = match program.as_str() {
        "field" => join_field(&spec),
        "moves" => moves::join(),
        _ => join(&spec),
    };
    print!("{}", source.text);
}

fn form(name: &str) -> scan::Form {
    let known = |form: &scan::Form| format!("{form:?}").to_lowercase() == name;
    scan::Form::ALL.into_iter().find(known).unwrap_or_else(|| panic!("what is {name}?"))
}

//! Writes a joined text to standard output: `emit [ptx=0] [group=256] [block=128] [blocks=4] [table=global]
//! [shared=0] [count=0] [unroll=1] [ranges=2] [filter=set] [wide=0] [inline=0] [stage=walk|words] [program=field]`.
//! `emit to=FOLDER` writes every text that a release ships as PTX there, each named by its hash.

use std::{env, fs};

use warpsmith_kernel::{Filter, Spec, Stage, Table, join, join_field, shipped};

fn main() {
    let mut spec = Spec::default();
    let mut joined: fn(&Spec) -> _ = join;
    for argument in env::args().skip(1) {
        let (name, value) = argument.split_once('=').expect("name=value");
        let number = || value.parse::<u32>().expect("a number");
        match name {
            "ptx" => spec.ptx = number() != 0,
            "group" => spec.group = number(),
            "block" => spec.block = number(),
            "blocks" => spec.blocks = number(),
            "table" => spec.table = if value == "global" { Table::Global } else { Table::Constant },
            "shared" => spec.shared_inversion = number() != 0,
            "count" => spec.count_carries = number() != 0,
            "unroll" => spec.unroll_signs = number() != 0,
            "ranges" => spec.filter = Filter::Range { count: number() },
            "wide" => spec.wide = number() != 0,
            "filter" if value == "set" => spec.filter = Filter::Set,
            "inline" => spec.inline = number() != 0,
            "stage" if value == "walk" => spec.stage = Stage::Walk,
            "stage" if value == "words" => spec.stage = Stage::Words,
            "program" if value == "field" => joined = join_field,
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
    print!("{}", joined(&spec).text);
}

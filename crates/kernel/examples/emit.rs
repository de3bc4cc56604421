//! Writes a joined text to standard output: `emit [ptx=0] [group=256] [block=128] [blocks=4] [table=global]
//! [shared=0] [count=0] [unroll=1] [ranges=2] [filter=set] [wide=0]`.

use warpsmith_kernel::{Filter, Spec, Table, join};

fn main() {
    let mut spec = Spec::default();
    for argument in std::env::args().skip(1) {
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
            _ => panic!("what is {argument}?"),
        }
    }
    print!("{}", join(&spec).text);
}

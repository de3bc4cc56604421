//! Prints what this machine has: `cargo run -p warpsmith-device --example survey`.

fn main() {
    let survey = warpsmith_device::survey();
    for device in &survey.devices {
        let info = device.info();
        println!("{}: {} ({}, {}, driver {})", info.id, info.name, info.vendor, info.arch, info.driver);
        println!(
            "    {} units, {} MiB, {} KiB constant, {} KiB shared, {}{}",
            info.units,
            info.memory >> 20,
            info.constant_memory >> 10,
            info.shared_memory >> 10,
            info.identity.as_deref().unwrap_or("no identity"),
            info.same_as.as_ref().map(|id| format!(", the same card as {id}")).unwrap_or_default(),
        );
        if let Err(reason) = device.can_build() {
            println!("    cannot compile: {reason}");
        }
    }
    for (what, why) in &survey.missing {
        println!("no {what}: {why}");
    }
}

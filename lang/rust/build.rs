//! Finds libkochab: in the folder that LIBKOCHAB_DIR names, or by pkg-config, or where the linker looks.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=LIBKOCHAB_DIR");
    println!("cargo:rustc-link-lib=dylib=kochab");
    if let Ok(dir) = std::env::var("LIBKOCHAB_DIR") {
        println!("cargo:rustc-link-search=native={dir}");
        return;
    }
    let asked = Command::new("pkg-config").args(["--variable=libdir", "kochab"]).output();
    if let Ok(out) = asked {
        let dir = String::from_utf8_lossy(&out.stdout).trim().to_string();
        if out.status.success() && !dir.is_empty() {
            println!("cargo:rustc-link-search=native={dir}");
        }
    }
}

[package]
name = "{{name}}"
description = "Greets every Profile"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish.workspace = true

[lints]
workspace = true

[lib]
crate-type = ["cdylib", "rlib"]

[dependencies]
reeve-sdk.workspace = true

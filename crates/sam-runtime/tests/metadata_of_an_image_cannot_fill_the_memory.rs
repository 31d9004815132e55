//! Case I5: a colour profile that unpacks to a gigabyte costs neither the memory nor the picture's safety.
//! A file, and so a process, of its own: it looks at the process's peak memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};
use sam_runtime::{ImageLimits, decode_image};

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let body = [kind.as_slice(), data].concat();
    png.extend(&body);
    let mut crc = flate2::Crc::new();
    crc.update(&body);
    png.extend(crc.sum().to_be_bytes());
}

/// Peak resident memory of this process in MiB, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

#[test]
fn a_profile_of_a_gigabyte_is_not_unpacked() {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..1024 {
        packed.write_all(&zeros).unwrap();
    }
    let profile = [b"bomb\0\0".as_slice(), &packed.finish().unwrap()].concat();
    let mut pixels = ZlibEncoder::new(Vec::new(), Compression::best());
    pixels.write_all(&[0, 10, 20, 30]).unwrap();

    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut png, *b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
    chunk(&mut png, *b"iCCP", &profile);
    chunk(&mut png, *b"IDAT", &pixels.finish().unwrap());
    chunk(&mut png, *b"IEND", &[]);

    // Refusing the picture and leaving the profile out are both right.
    if let Ok(image) = decode_image(&png, ImageLimits::default()) {
        assert_eq!(image.image.get_pixel(0, 0).0, [10, 20, 30]);
    }
    if let Some(peak) = peak() {
        assert!(peak < 256, "{peak} MiB for a picture of one pixel");
    }
}

//! Deltas of packs: instructions that build an object from another one.
//!
//! Law: nothing of a delta is believed: each instruction must stay within the base and within the size of the result.

use super::packs::StoreError;

const WRONG: StoreError = StoreError::Corrupt("a delta of a pack is damaged");

/// The sizes of the base and of the result, and where the instructions begin.
pub(super) fn sizes(delta: &[u8]) -> Result<(u64, u64, usize), StoreError> {
    let mut used = 0;
    let mut size = || {
        let mut size = 0_u64;
        let mut shift = 0;
        loop {
            let byte = *delta.get(used).ok_or(WRONG)?;
            used += 1;
            if shift > 56 {
                return Err(WRONG);
            }
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(size);
            }
        }
    };
    let base = size()?;
    let result = size()?;
    Ok((base, result, used))
}

/// Applies `delta` to `base`.
pub(super) fn apply(base: &[u8], delta: &[u8], limit: u64) -> Result<Vec<u8>, StoreError> {
    let (base_size, size, start) = sizes(delta)?;
    if size > limit {
        return Err(StoreError::TooLarge(size));
    }
    let size = usize::try_from(size).map_err(|_| WRONG)?;
    if base_size != base.len() as u64 {
        return Err(WRONG);
    }
    // A size that is only claimed takes no memory.
    let likely = size.min(delta.len().saturating_mul(64).saturating_add(base.len()));
    let mut out = Vec::with_capacity(likely);
    let mut bytes = delta.iter().skip(start).copied();
    while let Some(instruction) = bytes.next() {
        if instruction & 0x80 == 0 {
            let count = usize::from(instruction);
            let before = out.len();
            out.extend(bytes.by_ref().take(count));
            if count == 0 || out.len() - before != count {
                return Err(WRONG);
            }
        } else {
            let mut operand = |bits: std::ops::Range<u8>| {
                let mut value = 0_usize;
                for (at, bit) in bits.enumerate() {
                    if instruction & (1 << bit) != 0 {
                        value |= usize::from(bytes.next().ok_or(WRONG)?) << (8 * at);
                    }
                }
                Ok::<usize, StoreError>(value)
            };
            let offset = operand(0..4)?;
            let count = operand(4..7)?;
            let count = if count == 0 { 0x1_0000 } else { count };
            let end = offset.checked_add(count).ok_or(WRONG)?;
            out.extend_from_slice(base.get(offset..end).ok_or(WRONG)?);
        }
        if out.len() > size {
            return Err(WRONG);
        }
    }
    if out.len() == size { Ok(out) } else { Err(WRONG) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-02: copies and insertions; whatever leaves the base or the result is refused.
    #[test]
    fn instructions_stay_within_base_and_result() {
        let made = |delta: &[u8]| apply(b"abcdef", delta, 100).ok();
        assert_eq!(made(b"\x06\x05\x90\x03\x02xy"), Some(b"abcxy".to_vec()));
        assert_eq!(made(b"\x06\x02\x91\x04\x02"), Some(b"ef".to_vec()));
        for wrong in [
            &b""[..],
            b"\x06",
            b"\x06\x80",
            b"\x05\x03\x90\x03",
            b"\x06\x02\x90\x03",
            b"\x06\x04\x90\x03",
            b"\x06\x03\x91\x05\x03",
            b"\x06\x03\x00",
            b"\x06\x03\x03xy",
            b"\x06\x03\x90",
            b"\x06\xff\xff\xff\xff\x0f\x90\x03",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01",
        ] {
            assert_eq!(made(wrong), None, "{wrong:?}");
        }
    }
}

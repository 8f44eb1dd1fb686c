//! Functions that allocate as often as their names say.

/// Six allocations of 160 bytes: a vector with room for five pointers, and five boxes of 24 bytes.
#[inline(never)]
pub fn six() -> Vec<Box<[u8; 24]>> {
    let mut boxes = Vec::with_capacity(5);
    for number in 0..5 {
        boxes.push(Box::new([number; 24]));
    }
    boxes
}

/// Two allocations behind [`six`], of whose vector it is: a box of 24 bytes, and the vector grows to 80.
#[inline(never)]
pub fn two_more(boxes: &mut Vec<Box<[u8; 24]>>) {
    boxes.push(Box::new([5; 24]));
}

//! No input makes the transport panic, and what it reads does not depend on how the platform cut the body.

#[path = "../../fuzz/src/transport.rs"]
mod targets;

use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that look like bodies: frames, base64 of frames, timeouts, header blocks, and whatever.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let frame = (0..3_u8, 0..80_u32, vec(any::<u8>(), 0..90)).prop_map(|(flag, announced, message)| {
        let mut frame = vec![flag];
        frame.extend(announced.to_be_bytes());
        frame.extend(message);
        frame
    });
    let exact = (any::<u8>(), vec(any::<u8>(), 0..80)).prop_map(|(mode, message)| {
        let mut body = vec![mode];
        body.push(0);
        body.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        body.extend(message);
        body
    });
    let text = "[A-Za-z0-9+/=]{0,60}".prop_map(String::into_bytes);
    let timeout = "[0-9]{0,10}[HMSmunx]?".prop_map(String::into_bytes);
    let headers = "([a-z-]{1,12}: ?[ -~\\t]{0,12}(\r\n)?){0,3}".prop_map(String::into_bytes);
    prop_oneof![frame, exact, text, timeout, headers, vec(any::<u8>(), 0..100)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_fuzz_target_holds_on_generated_input(data in input()) {
        for target in targets::ALL {
            target(&data);
        }
    }
}

package ib

import "time"

// rnrTimers maps an RNR timer code to hundredths of a millisecond (IBA 9.7.5.2.8, table "Encoding for RNR NAK Timer Field").
var rnrTimers = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRTimer is the minimum time that an RNR timer code (0 to 31) asks the requester to wait; code 0 is the
// longest, 655.36 ms.
func RNRTimer(code uint8) time.Duration {
	return time.Duration(rnrTimers[code&0x1f]) * 10 * time.Microsecond
}

// RNRTimerCode is the code of the shortest timer that is not shorter than d, or 0, the longest, if there
// is none.
func RNRTimerCode(d time.Duration) uint8 {
	for code := uint8(1); code < 32; code++ {
		if RNRTimer(code) >= d {
			return code
		}
	}
	return 0
}

// AckTimeout is the local ACK timeout 4.096 us * 2^n of a five-bit code (IBA 9.7.6.1.3). Code 0 means no
// timeout and yields 0. CM timeouts use the same encoding (IBA 12.7.4), but there code 0 really is 4.096
// us: see CMTimeout.
func AckTimeout(code uint8) time.Duration {
	if code &= 0x1f; code == 0 {
		return 0
	}
	return CMTimeout(code)
}

// AckTimeoutCode is the smallest code whose timeout is not shorter than d, at most 31. For d <= 0 it is 0,
// no timeout.
func AckTimeoutCode(d time.Duration) uint8 {
	if d <= 0 {
		return 0
	}
	for code := uint8(1); code < 31; code++ {
		if AckTimeout(code) >= d {
			return code
		}
	}
	return 31
}

// CMTimeout is 4.096 us * 2^n for every five-bit code: the remote and local CM response timeouts, MRA
// service timeout and the ack delays of CM messages.
func CMTimeout(code uint8) time.Duration { return 4096 * time.Nanosecond << (code & 0x1f) }

// CMTimeoutCode is the smallest code whose timeout is not shorter than d, at most 31.
func CMTimeoutCode(d time.Duration) uint8 {
	for code := uint8(0); code < 31; code++ {
		if CMTimeout(code) >= d {
			return code
		}
	}
	return 31
}

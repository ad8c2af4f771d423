package congestion

import (
	"fmt"
	"time"
)

// FromKeys returns the settings that the registry keys of congestion control make, by their values (WinOF-2 Ethernet b, RCM
// Parameters). The line rate has no key.
func FromKeys(value func(name string) uint64) Settings {
	us := func(name string) time.Duration { return time.Duration(value(name)) * time.Microsecond }
	mbps := func(name string) float64 { return float64(value(name)) }
	of1024 := func(name string) float64 { return float64(value(name)) / 1024 }
	priorities := func(role string) (bits uint8) {
		for p := range Priorities {
			bits |= uint8(value(fmt.Sprintf("Dcqcn%sEnablePrio%d", role, p))) << p
		}
		return bits
	}
	s := Settings{
		React: priorities("RP"), Notify: priorities("NP"),
		CNPDSCP: uint8(value("DcqcnCnpDscp")), CNPPriority: uint8(value("DcqcnCnp802pPrio")),
		FollowPriority: value("DcqcnCnpPrioMode") == 1,
	}
	if s.React == 0 {
		return s
	}
	s.Reaction = Parameters{
		ClampTarget: value("DcqcnClampTgtRate") == 1, ClampTargetAfterTime: value("DcqcnClampTgtRateAfterTimeInc") == 1,
		TimeReset: us("DcqcnRpgTimeReset"), ByteReset: 64 * int64(value("DcqcnRpgByteReset")), Threshold: int(value("DcqcnRpgThreshold")),
		AIRate: mbps("DcqcnRpgAiRate"), HAIRate: mbps("DcqcnRpgHaiRate"), AlphaShift: uint(value("DcqcnAlphaToRateShift")),
		MinDecrease: float64(value("DcqcnRpgMinDecFac")) / 100, MinRate: mbps("DcqcnRpgMinRate"),
		FirstCNPRate: mbps("DcqcnRateToSetOnFirstCnp"), G: of1024("DcqcnDceTcpG"), AlphaPeriod: us("DcqcnDceTcpRtt"),
		ReducePeriod: us("DcqcnRateReduceMonitorPeriod"), InitialAlpha: of1024("DcqcnInitialAlphaValue"),
	}
	return s
}

package driver

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// congestion returns the settings of congestion control (WinOF-2 Ethernet b, RCM Parameters). An adapter of the generation that
// has no such keys has none.
func (r *running) congestion() congestion.Settings {
	us := func(name string) time.Duration { return time.Duration(r.value(name)) * time.Microsecond }
	mbps := func(name string) float64 { return float64(r.value(name)) }
	of1024 := func(name string) float64 { return float64(r.value(name)) / 1024 }
	priorities := func(role string) (bits uint8) {
		for p := range congestion.Priorities {
			bits |= uint8(r.value(fmt.Sprintf("Dcqcn%sEnablePrio%d", role, p))) << p
		}
		return bits
	}
	s := congestion.Settings{
		React: priorities("RP"), Notify: priorities("NP"),
		CNPDSCP: uint8(r.value("DcqcnCnpDscp")), CNPPriority: uint8(r.value("DcqcnCnp802pPrio")),
		FollowPriority: r.value("DcqcnCnpPrioMode") == 1,
	}
	if s.React == 0 {
		return s
	}
	s.Reaction = congestion.Parameters{
		ClampTarget: r.value("DcqcnClampTgtRate") == 1, ClampTargetAfterTime: r.value("DcqcnClampTgtRateAfterTimeInc") == 1,
		TimeReset: us("DcqcnRpgTimeReset"), ByteReset: 64 * int64(r.value("DcqcnRpgByteReset")), Threshold: int(r.value("DcqcnRpgThreshold")),
		AIRate: mbps("DcqcnRpgAiRate"), HAIRate: mbps("DcqcnRpgHaiRate"), AlphaShift: uint(r.value("DcqcnAlphaToRateShift")),
		MinDecrease: float64(r.value("DcqcnRpgMinDecFac")) / 100, MinRate: mbps("DcqcnRpgMinRate"),
		FirstCNPRate: mbps("DcqcnRateToSetOnFirstCnp"), G: of1024("DcqcnDceTcpG"), AlphaPeriod: us("DcqcnDceTcpRtt"),
		ReducePeriod: us("DcqcnRateReduceMonitorPeriod"), InitialAlpha: of1024("DcqcnInitialAlphaValue"),
	}
	return s
}

// changeCongestion makes adapter i follow its keys of congestion control.
func (d *Driver) changeCongestion(i int) error {
	return d.host.SetCongestion(uint32(i), d.running[i].congestion())
}

package mad

import "testing"

func TestActiveSpeed(t *testing.T) {
	for _, c := range []struct {
		info PortInfo
		want Speed
	}{
		{PortInfo{}, SpeedNone},
		{PortInfo{LinkSpeedActive: 1}, SpeedSDR},
		{PortInfo{LinkSpeedActive: 2}, SpeedDDR},
		{PortInfo{LinkSpeedActive: 4}, SpeedQDR},
		{PortInfo{LinkSpeedActive: 4, LinkSpeedExtActive: 1}, SpeedFDR},
		{PortInfo{LinkSpeedActive: 4, LinkSpeedExtActive: 2}, SpeedEDR},
		{PortInfo{LinkSpeedActive: 4, LinkSpeedExtActive: 4}, SpeedHDR},
		{PortInfo{LinkSpeedActive: 4, LinkSpeedExtActive: 8}, SpeedNDR},
		{PortInfo{LinkSpeedActive: 4, LinkSpeedExt2Active: 1}, SpeedXDR},
	} {
		if got := c.info.ActiveSpeed(); got != c.want {
			t.Errorf("%d/%d/%d: %v, want %v", c.info.LinkSpeedActive, c.info.LinkSpeedExtActive, c.info.LinkSpeedExt2Active, got, c.want)
		}
	}
}

func TestSpeedNames(t *testing.T) {
	for s := SpeedSDR; s <= SpeedXDR; s++ {
		if got, ok := ParseSpeed(s.String()); !ok || got != s {
			t.Errorf("%v: %v, %v", s, got, ok)
		}
		if s > SpeedSDR && s.LaneMbps() <= (s-1).LaneMbps() {
			t.Errorf("%v is not faster than %v", s, s-1)
		}
	}
	if _, ok := ParseSpeed("none"); ok {
		t.Error("none was read")
	}
}

// IBA 14.2.5.6: the bits of LinkWidthActive.
func TestWidths(t *testing.T) {
	for lanes, w := range map[int]Width{1: 1, 4: 2, 8: 4, 12: 8, 2: 16} {
		if Lanes(w) != lanes || WidthOf(lanes) != w {
			t.Errorf("%d lanes: %d and %d", lanes, WidthOf(lanes), Lanes(w))
		}
	}
	if Lanes(3) != 0 || WidthOf(3) != 0 {
		t.Error("three is no width")
	}
}

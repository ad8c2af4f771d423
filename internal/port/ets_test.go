package port

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/qos"
)

// TestTrafficOf: classes that share have their bandwidths of what the strict ones leave, and one of 0 % does not starve (IEEE 802.1Q,
// 37.3).
func TestTrafficOf(t *testing.T) {
	for _, x := range []struct {
		classes, bandwidths string
		pending             uint8
		want                [8]float64
	}{
		{"none", "0:100", 0xff, [8]float64{12.5, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5}},
		{"1:1,3:3", "0:40,1:10,3:50", 0b1011, [8]float64{40, 10, 0, 50}},
		{"1:1,3:3", "0:40,1:10,3:50", 0b0011, [8]float64{80, 20}},
		{"1:1,2:2,3:3,4:4,5:5,6:6,7:7", "0:1,1:2,2:3,3:4,4:10,5:20,6:30,7:30", 0xff, [8]float64{1, 2, 3, 4, 10, 20, 30, 30}},
		{"3:1,4:2", "0:100,1:0", 0b1001, [8]float64{0: 99, 3: 1}},
		{"3:1,4:2", "0:100,1:0", 0b10001, [8]float64{4: 100}},
	} {
		e, err := qos.ParseClasses(x.classes, x.bandwidths)
		if err != nil {
			t.Fatal(err)
		}
		var s Scheduler
		if err := s.SetTraffic(0, TrafficOf(&e, [8]uint64{})); err != nil {
			t.Fatal(err)
		}
		total, bytes := 0, draw(&s, x.pending, 100*time.Millisecond)
		for _, n := range bytes {
			total += n
		}
		for p, n := range bytes {
			if share := 100 * float64(n) / float64(total); share < x.want[p]-.2 || share > x.want[p]+.2 {
				t.Errorf("%s %s, %08b: priority %d has %.2f %%, want %.2f", x.classes, x.bandwidths, x.pending, p, share, x.want[p])
			}
		}
	}
}

// TestTrafficOf_Default: the settings of a port that nobody has configured leave the scheduler as it is.
func TestTrafficOf_Default(t *testing.T) {
	e := qos.DefaultETS()
	var s Scheduler
	if err := s.SetTraffic(0, TrafficOf(&e, [8]uint64{})); err != nil || !s.plain {
		t.Errorf("plain is %v, %v", s.plain, err)
	}
}

package config

import (
	"strings"
	"testing"
)

// Quotas on a command line and in a file are the same; what one container has of its own goes before what all have.
func TestContainers(t *testing.T) {
	one, err := ParseContainers("count=3,memory=64MiB,descriptors=40,2.memory=1GiB,2.descriptors=80,0.descriptors=8")
	if err != nil {
		t.Fatal(err)
	}
	file, err := decode(strings.NewReader(`{"containers": {"count": 3, "memory": "64MiB", "descriptors": 40,
		"quotas": {"2": {"memory": "1GiB", "descriptors": 80}, "0": {"descriptors": 8}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Quota{{64 << 20, 8}, {64 << 20, 40}, {1 << 30, 80}}
	for _, c := range []*Containers{&one, file.Containers} {
		if err := c.complete("/s"); err != nil {
			t.Error(err)
		}
		for n, q := range want {
			if got := c.Quota(n); got != q {
				t.Errorf("container %d may hold %+v, want %+v", n, got, q)
			}
		}
	}
}

func TestContainers_Wrong(t *testing.T) {
	for text, want := range map[string]string{
		"memory=64MiB":               "containers.count is 0; allowed: 1 to 256",
		"count=2,2.memory=64MiB":     "containers.quotas is 2; allowed: 0 to 1, since containers.count is 2",
		"count=2,1.memory=1MiB":      "containers.quotas.1.memory is 1MiB; allowed: at least",
		"count=2,1.descriptors=1":    "containers.quotas.1.descriptors is 1; allowed: 4 to",
		"count=2,memory=1":           "containers.memory is 1; allowed: at least",
		"count=2,1.memory":           `--containers is "1.memory"; allowed: count=N`,
		"count=2,1.count=3":          `--containers is "1.count=3"`,
		"count=2,-1.memory=64MiB":    `--containers is "-1.memory=64MiB"`,
		"count=2,01.memory=64MiB":    `--containers is "01.memory=64MiB"`,
		"count=2,count=2":            `--containers is "count=2"`,
		"count=x":                    `--containers is "count=x"`,
		"count=2,0.descriptors=many": `--containers is "0.descriptors=many"`,
	} {
		c, err := ParseContainers(text)
		if err == nil {
			err = c.complete("/s")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"containers": {"count": 1, "quotas": {"one": {}}}}`:            "containers.quotas",
		`{"containers": {"count": 1, "quotas": {"0": {"qps": 1}}}}`:      "unknown field",
		`{"containers": {"count": 1, "quotas": {"0": {"memory": "x"}}}}`: "allowed: bytes",
	} {
		if _, err := decode(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestParseQuota(t *testing.T) {
	r, err := ParseQuota(1, []string{"memory=64MiB", "descriptors=0"})
	if err != nil || r.Number != 1 || *r.Memory != 64<<20 || *r.Descriptors != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = ParseQuota(0, []string{"descriptors=9"}); err != nil || r.Memory != nil || *r.Descriptors != 9 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, list := range [][]string{{"memory"}, {"memory=big"}, {"count=1"}, {"memory=0", "memory=0"}, {"descriptors=4", "descriptors=5"}} {
		if _, err := ParseQuota(0, list); err == nil || !strings.Contains(err.Error(), "allowed: memory=SIZE, descriptors=N, each once") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

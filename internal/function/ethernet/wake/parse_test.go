package wake

import "testing"

func TestParsePattern(t *testing.T) {
	frame := make([]byte, 60)
	frame[12], frame[13], frame[38], frame[41] = 8, 6, 192, 1
	for text, want := range map[string]bool{
		"12:0806": true, "12:0806+38:c0": true, "38:C0000001+12:0806": true, "12:0800": false, "12:0806+38:c1": false, "0:00": true, "59:0000": false,
	} {
		p, err := ParsePattern(text)
		if err != nil || p.Check() != nil {
			t.Fatalf("%s: %v, %v", text, err, p.Check())
		}
		if got := Matches([]Pattern{p}, frame) == 0; got != want {
			t.Errorf("%s matches: %t, want %t", text, got, want)
		}
	}
	for _, text := range []string{"", "12", "12:", "12:0", "12:xx", ":08", "-1:08", "127:0102", "256:01", "12:08+12:08", "12:08+", "1 :08"} {
		if p, err := ParsePattern(text); err == nil {
			t.Errorf("%q is %v", text, p)
		}
	}
}

// FuzzParsePattern: what is read is a pattern that can be used, and its text is read as the same.
func FuzzParsePattern(f *testing.F) {
	f.Add("12:0806+38:c0000201")
	f.Add("127:00")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		q, err := ParsePattern(p.String())
		if err != nil || q.String() != p.String() {
			t.Fatalf("%q is %q and then %q, %v", text, p.String(), q.String(), err)
		}
	})
}

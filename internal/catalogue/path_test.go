package catalogue

import "testing"

// Directories are written in the style of the Windows kernel, with the prefix \??\ before a drive (WinOF 5.50, 4.7.4), or
// as this system writes them; no path leads out of where it begins.
func TestParseSystemPath(t *testing.T) {
	for text, want := range map[string]SystemPath{
		`\??\C:\DMN_DIR`:                    {Drive: 'C', Below: "DMN_DIR"},
		`c:\a\b\`:                           {Drive: 'C', Below: "a/b"},
		`\SystemRoot\temp\Mlx4_Dump_Me_Now`: {Temp: true, Below: "Mlx4_Dump_Me_Now"},
		`\systemroot\TEMP`:                  {Temp: true},
		"/var/dumps":                        {Below: "var/dumps"},
		`\??\/var//dumps/`:                  {Below: "var/dumps"},
		`/var/a\b`:                          {Below: `var/a\b`},
	} {
		if got, ok := ParseSystemPath(text); !ok || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "dumps", `\??\`, `C:`, `C:dumps`, `1:\dumps`, `\??\C:\..\x`, "/var/../etc", `\SystemRoot\temp\..\x`,
		`\SystemRoot\temporary`, `\SystemRoot\system32`, `..\x`, `\var`} {
		if got, ok := ParseSystemPath(text); ok {
			t.Errorf("%q: %+v, want a refusal", text, got)
		}
	}
}

func FuzzParseSystemPath(f *testing.F) {
	f.Add(`\??\C:\DMN_DIR`)
	f.Add(`\SystemRoot\temp\a\..\..\b`)
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := ParseSystemPath(text)
		if !ok {
			return
		}
		again := "/" + p.Below
		if q, ok := ParseSystemPath(again); p.Drive == 0 && !p.Temp && (!ok || q != p) {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, p, again, q, ok)
		}
	})
}

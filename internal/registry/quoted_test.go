package registry

import "testing"

// TestErrorsNameKeysAsTheyAreWritten: errors name keys as one types them: a backslash is not doubled.
func TestErrorsNameKeysAsTheyAreWritten(t *testing.T) {
	for path, want := range map[string]string{
		`HKCU\Software\x`:     `key "HKCU\Software\x": allowed: a path that begins with HKLM or HKEY_LOCAL_MACHINE`,
		"HKCU\\a\x00b":        `key "HKCU\\a\x00b": allowed: a path that begins with HKLM or HKEY_LOCAL_MACHINE`,
		`HKLM\SOFTWARE\Größe`: `key "HKLM\SOFTWARE\Größe": allowed: keys below HKLM\SYSTEM\CurrentControlSet`,
	} {
		if _, err := ParsePath(path); err == nil || err.Error() != want {
			t.Errorf("error %v\nwant %s", err, want)
		}
	}
}

package main

import (
	"archive/zip"
	"bytes"
	"debug/pe"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// windowsProgram is the program of the zip file for Windows, in the stage. Without it there is no zip file.
const windowsProgram = "windows/softvpi.exe"

// windowsContents returns what is in the zip file for Windows: all in one directory, since Windows has none for each kind of file.
func windowsContents(stage string) (list []entry, err error) {
	if !exists(filepath.Join(stage, windowsProgram)) {
		return nil, nil
	}
	for _, f := range []string{"softvpi.exe", "install.ps1", "uninstall.ps1", "notices.txt", "softvpi.cdx.json"} {
		list = append(list, entry{to: f, from: filepath.Join(stage, "windows", f), mode: 0o644, in: windows})
	}
	for from, to := range map[string]string{"powershell": "SoftVPI/", "doc": ""} {
		files, err := filesIn(filepath.Join(stage, from))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if strings.HasPrefix(f, "notices.") || f == "softvpi.cdx.json" { // those of the programs for Linux
				continue
			}
			list = append(list, entry{to: to + f, from: filepath.Join(stage, from, f), mode: 0o644, in: windows})
		}
	}
	for _, e := range list {
		if !exists(e.from) {
			return nil, fmt.Errorf("%s has nothing for %s of the zip file", stage, e.to)
		}
	}
	return list, nil
}

// writeOfWindows adds to the stage what the program for Windows was built of, if it was built.
func writeOfWindows(stage string, r release, from sources) error {
	program := filepath.Join(stage, windowsProgram)
	if !exists(program) {
		return nil
	}
	b, err := newBill(r.version, program)
	if err != nil {
		return err
	}
	if err := b.write(filepath.Join(stage, "windows", "softvpi.cdx.json")); err != nil {
		return err
	}
	text, err := noticesOf(b, from)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(stage, "windows", "notices.txt"), []byte(text), 0o644)
}

// writeZip writes the zip file for Windows, whose entries are below a directory with the version in its name.
func writeZip(f *os.File, r release, list []entry) error {
	z := zip.NewWriter(f)
	empty := true
	for _, e := range list {
		if e.in != windows {
			continue
		}
		empty = false
		h := &zip.FileHeader{Name: "softvpi-" + r.version + "/" + e.to, Method: zip.Deflate, Modified: r.time}
		h.SetMode(e.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		if err := ofWindows(e, body); err != nil {
			return fmt.Errorf("%s: %w", e.to, err)
		}
		if _, err := w.Write(body); err != nil {
			return err
		}
	}
	if empty {
		return errors.New("the stage has no program for Windows; allowed: -only without zip")
	}
	return z.Close()
}

// ofWindows refuses what Windows could not use: a program of another system, and scripts that Windows PowerShell 5.1, which takes a file
// without a byte order mark as one of the system's old character set, would read otherwise than they are.
func ofWindows(e entry, body []byte) error {
	switch filepath.Ext(e.to) {
	case ".exe":
		p, err := pe.NewFile(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("no program of Windows: %w", err)
		}
		return p.Close()
	case ".ps1", ".psd1", ".psm1":
		if i := bytes.IndexFunc(body, func(r rune) bool { return r > 0x7e }); i >= 0 && !bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
			return fmt.Errorf("a character that is not ASCII at byte %d", i)
		}
	}
	return nil
}

package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The numbers of setup that the manuals print: return codes (WinOF 5.50, 6.2.1.1; WinOF-2 1.21, 5.1.1.1), and those warnings that can
// occur here (WinOF 5.50, 6.2.1.2 and 6.2.1.3).
const (
	Fatal         = 1603
	WrongPlatform = 1633
	NoDevice      = 1004
	NotRestored   = 3
)

// texts are those that the manuals print for the numbers.
var texts = map[int]string{
	Fatal:         "Fatal error during installation",
	WrongPlatform: "The installation package is not supported on this platform.",
	NoDevice:      "Failed to open the device",
	NotRestored:   "Failed to restore the configuration",
}

// Text returns the manuals' text for a number.
func Text(code int) string { return texts[code] }

// Properties are those that control an unattended installation (WinOF 5.50, 3.3.2; WinOF-2 1.21, 2.3.2).
type Properties struct {
	SkipFirmware bool          // MT_SKIPFWUPGRD
	WMI          bool          // MT_WMI
	RestoreConf  bool          // MT_RESTORECONF
	ND           bool          // MT_NDPROPERTY
	PerfCheck    bool          // PERFCHECK
	LoadTimeout  time.Duration // MT_DRIVER_LOAD_TIMEOUT
	DriversOnly  bool          // MT_DRIVERS_ONLY
	// LoadDriver is whether MT_DRIVER_LOAD_TIMEOUT was given, or tuning wants a driver.
	LoadDriver bool
}

// Names are those of the properties.
var Names = []string{"MT_SKIPFWUPGRD", "MT_WMI", "MT_RESTORECONF", "MT_NDPROPERTY", "PERFCHECK", "MT_DRIVER_LOAD_TIMEOUT", "MT_DRIVERS_ONLY"}

// maxLoadTimeout is the longest time in seconds to wait for a driver.
const maxLoadTimeout = 3600

// Defaults are the manuals', but that of PERFCHECK, since tuning changes the registry of a driver that has to run for it.
func Defaults() Properties {
	return Properties{WMI: true, RestoreConf: true, ND: true, LoadTimeout: 120 * time.Second}
}

// PropertyError says what is wrong with a property.
type PropertyError struct{ Name, Value, Allowed string }

// Error implements error.
func (e *PropertyError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("there is no property %s; allowed: %s", e.Name, e.Allowed)
	}
	return fmt.Sprintf("%s is %q; allowed: %s", e.Name, e.Value, e.Allowed)
}

// Set sets a property by its name.
func (p *Properties) Set(name, value string) error {
	switch name {
	case "MT_SKIPFWUPGRD":
		return setBool(&p.SkipFirmware, name, value)
	case "MT_WMI":
		return setBool(&p.WMI, name, value)
	case "MT_RESTORECONF":
		return setBool(&p.RestoreConf, name, value)
	case "PERFCHECK":
		err := setBool(&p.PerfCheck, name, value)
		p.LoadDriver = p.LoadDriver || p.PerfCheck
		return err
	case "MT_DRIVERS_ONLY":
		return setBool(&p.DriversOnly, name, value)
	case "MT_NDPROPERTY":
		if err := setBool(&p.ND, name, value); err != nil || p.ND {
			return err
		}
		return &PropertyError{name, value, "1, since the NetworkDirect provider is part of every program that uses it and cannot be left out"}
	case "MT_DRIVER_LOAD_TIMEOUT":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxLoadTimeout {
			return &PropertyError{name, quotable(value), fmt.Sprintf("seconds from 1 to %d", maxLoadTimeout)}
		}
		p.LoadTimeout, p.LoadDriver = time.Duration(n)*time.Second, true
		return nil
	}
	return &PropertyError{Name: name, Allowed: strings.Join(Names, " ")}
}

// quotable makes an empty value visible.
func quotable(s string) string {
	if s == "" {
		return " "
	}
	return s
}

// setBool sets a property that is 0 or 1, which the manuals also call False and True.
func setBool(to *bool, name, value string) error {
	switch strings.ToLower(value) {
	case "1", "true":
		*to = true
	case "0", "false":
		*to = false
	default:
		return &PropertyError{name, quotable(value), "0 1 False True"}
	}
	return nil
}

// FromEnvironment sets the properties that an environment has.
func (p *Properties) FromEnvironment(lookup func(string) (string, bool)) error {
	for _, n := range Names {
		if v, ok := lookup(n); ok {
			if err := p.Set(n, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Words are what a command line of the manuals says beside properties.
type Words struct {
	Remove bool   // /x
	Log    string // /l*vx FILE
}

// refused are words of the installers that have no meaning here, and what there is instead.
var refused = map[string]string{
	"/a":            "/a extracts files on Windows; here tar extracts the archive, which runs where it is",
	"/forcerestart": "/forcerestart restarts Windows; nothing here needs that, so leave it out",
	"/h":            "/h is the help of Windows' installer; that of this one is: softvpi setup --help",
}

// accepted are those that ask for what is so anyway: no questions, no restart.
var accepted = []string{"/S", "/s", "/qn", "/norestart"}

// WordError says which word of a command line is wrong.
type WordError struct{ Text string }

// Error implements error.
func (e *WordError) Error() string { return e.Text }

// Parse reads a command line of the manuals' installers: words such as /S, /v with what follows for Windows' installer, and properties.
func (p *Properties) Parse(args []string) (w Words, err error) {
	var words []string
	for _, a := range args {
		if rest, ok := strings.CutPrefix(a, "/v"); ok {
			words = append(words, strings.Fields(strings.Trim(rest, `"”`))...)
			continue
		}
		words = append(words, a)
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		name, value, property := strings.Cut(word, "=")
		switch {
		case property:
			if err := p.Set(propertyName(name), value); err != nil {
				return w, err
			}
		case word == "/x":
			w.Remove = true
		case word == "/l*vx":
			if i++; i == len(words) {
				return w, &WordError{"/l*vx has no file behind it; allowed: /l*vx FILE"}
			}
			w.Log = words[i]
		case slices.Contains(accepted, word):
		case refused[word] != "":
			return w, &WordError{refused[word]}
		default:
			return w, &WordError{fmt.Sprintf("unexpected argument %q; allowed: /S /v /qn /norestart /l*vx FILE /x, and NAME=VALUE with %s", word,
				strings.Join(Names, " "))}
		}
	}
	return w, nil
}

// propertyName takes the slashes away with which some of the manuals' lines have a property: /MT_WMI=1, and in one /MMT_... (WinOF 5.50,
// 3.3.2, steps 5 and 7).
func propertyName(s string) string {
	s = strings.TrimPrefix(s, "/")
	if rest, ok := strings.CutPrefix(s, "M"); ok && slices.Contains(Names, rest) {
		return rest
	}
	return s
}

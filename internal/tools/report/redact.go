package report

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// removed stands where a secret was.
const removed = "[removed]"

// leastSecret is the length of the shortest secret whose value is looked for by itself: a shorter one may be part of anything.
const leastSecret = 6

// secretName is the end of a name whose value is a secret. "key" by itself is none: it is a registry key nearly everywhere.
const secretName = `(?:token|secret|passw(?:or)?d|passphrase|pwd|credentials?|private[_-]?key|api[_-]?key|access[_-]?key|` +
	`(?:m|s[am]|am|vs|psk|shared|fabric|pre[_-]?shared)[_-]?key|psk)`

// pattern is what a secret looks like, with what stays of it. It is only looked for in lines with one of its words, in small letters: texts
// of many megabytes have few.
type pattern struct {
	words []string
	find  *regexp.Regexp
	keep  string
}

var nameWords = []string{"token", "secret", "passw", "passphrase", "pwd", "credential", "key", "psk"}

// patterns are looked for in lines; one that ends in a backslash goes on in the next, as in .reg files.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{nameWords, regexp.MustCompile(`(?i)("[\w.-]*` + secretName + `"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|[^\s,}\]]+)`), `${1}"` + removed + `"`},
		{nameWords, regexp.MustCompile(`(?i)("[\w.*-]*` + secretName + `"\s*=\s*)(?:"(?:[^"\\]|\\.)*"|(?:[^\r\n\\]|\\\r?\n)+)`),
			`${1}"` + removed + `"`},
		{nameWords, regexp.MustCompile(`(?i)((?:^|[^\w.-])[\w.-]*` + secretName + `\s*[=:]\s*)(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&"'<>\[]+)`),
			`${1}` + removed},
		{[]string{"bearer", "authorization"}, regexp.MustCompile(`(?i)(authorization\s*:\s*(?:bearer|basic)\s+|bearer\s+)[\w.~+/=-]+`),
			`${1}` + removed},
		{[]string{"://"}, regexp.MustCompile(`([a-z][a-z0-9+.-]*://[^/\s:@"]*:)[^/\s@"]+@`), `${1}` + removed + `@`},
	}
})

// The ends of private keys in PEM.
var (
	pemWords = []string{"private key-----"}
	pem      = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	})
)

// redactor removes secrets: values that are known, wherever they are, and what looks like one.
type redactor struct{ values [][]byte }

// know adds a secret's value.
func (r *redactor) know(value []byte) {
	if value = bytes.TrimSpace(value); len(value) < leastSecret {
		return
	}
	for _, form := range [][]byte{value, []byte(base64.StdEncoding.EncodeToString(value))} {
		if !slices.ContainsFunc(r.values, func(v []byte) bool { return bytes.Equal(v, form) }) {
			r.values = append(r.values, form)
		}
	}
	// A longer one may contain a shorter one.
	slices.SortStableFunc(r.values, func(a, b []byte) int { return len(b) - len(a) })
}

// text returns b without secrets, and how many were removed.
func (r *redactor) text(b []byte) (out []byte, n int) {
	for _, v := range r.values {
		if k := bytes.Count(b, v); k > 0 {
			n += k
			b = bytes.ReplaceAll(b, v, []byte(removed))
		}
	}
	if hasWord(bytes.ToLower(b), pemWords) {
		b = pem().ReplaceAllFunc(b, func([]byte) []byte { n++; return []byte(removed) })
	}
	out = make([]byte, 0, len(b))
	for len(b) > 0 {
		end := lineEnd(b)
		line, k := withoutSecrets(b[:end])
		out, n, b = append(out, line...), n+k, b[end:]
	}
	return out, n
}

// lineEnd returns where the first line of b ends, with those in which it goes on.
func lineEnd(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return len(b)
		}
		at += i + 1
		if !bytes.HasSuffix(bytes.TrimRight(b[:at], "\r\n"), []byte(`\`)) {
			return at
		}
	}
}

// withoutSecrets returns a line without what looks like a secret.
func withoutSecrets(line []byte) (out []byte, n int) {
	small := bytes.ToLower(line)
	for _, p := range patterns() {
		if !hasWord(small, p.words) {
			continue
		}
		line = p.find.ReplaceAllFunc(line, func(found []byte) []byte {
			next := p.find.ReplaceAll(found, []byte(p.keep))
			if !bytes.Equal(next, found) && !bytes.Contains(found, []byte(removed)) {
				n++
			}
			return next
		})
	}
	return line, n
}

func hasWord(small []byte, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(small, []byte(w)) })
}

// isSecretName reports whether the value of a variable or file with that name is a secret.
func isSecretName(name string) bool {
	name = strings.ToLower(name)
	return wholeSecretName().MatchString(name) || strings.HasSuffix(name, "_key") || strings.HasSuffix(name, "-key.pem") ||
		strings.HasSuffix(name, ".key") || name == "key"
}

var wholeSecretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w.-]*` + secretName + `$`) })

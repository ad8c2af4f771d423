package main

import (
	"errors"
	"fmt"
	"html"
	"net/url"
	"path"
	"regexp"
	"strings"
)

var (
	attribute = regexp.MustCompile(`\s(?:href|src|action)="([^"]*)"`)
	identity  = regexp.MustCompile(`\sid="([^"]*)"`)
)

// check returns an error for every link of the pages that leads nowhere, and for every resource from elsewhere.
func check(files map[string][]byte) error {
	ids := map[string]map[string]bool{}
	for name, text := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		ids[name] = map[string]bool{}
		for _, m := range identity.FindAllSubmatch(text, -1) {
			ids[name][html.UnescapeString(string(m[1]))] = true
		}
	}
	var errs []error
	for _, name := range sorted(ids) {
		for _, m := range attribute.FindAllSubmatch(files[name], -1) {
			to := html.UnescapeString(string(m[1]))
			if why := broken(files, ids, name, to); why != "" {
				errs = append(errs, fmt.Errorf("%s: link %q: %s", name, to, why))
			}
		}
	}
	return errors.Join(errs...)
}

// broken says why a link leads nowhere; empty: it does not, or out of the site.
func broken(files map[string][]byte, ids map[string]map[string]bool, from, to string) string {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "":
		return ""
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	if _, ok := files[target]; !ok {
		return "there is no such page"
	}
	if u.Fragment != "" && strings.HasSuffix(target, ".html") && !ids[target][u.Fragment] {
		return "there is no such heading"
	}
	return ""
}

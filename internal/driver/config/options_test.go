package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestAdapterOptionsTwice: an option of --adapter may be given once, because of two it is unclear which is meant.
func TestAdapterOptionsTwice(t *testing.T) {
	for text, want := range map[string]string{
		"ib0=cable,address=10.9.0.1,address=10.9.0.2": `"address=10.9.0.2", after another address; allowed: each once`,
		"ib0=cable,node=a,node=a":                     `"node=a", after another node`,
		"e=127.9.0.1,address=127.9.0.2":               `"address=127.9.0.2", after another address`,
		"e=127.9.0.1,follow,follow":                   `"follow", after another follow`,
	} {
		if _, err := ParseAdapter(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestUnknownFieldsAreToldTheOthers: the error for an unknown field lists all fields that exist.
func TestUnknownFieldsAreToldTheOthers(t *testing.T) {
	_, err := decode(strings.NewReader(`{"nothing": 1}`))
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			if typ.Field(i).Anonymous {
				look(typ.Field(i).Type)
			}
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q is not among %v", name, err)
			}
			look(typ.Field(i).Type)
		}
	}
	look(reflect.TypeFor[Config]())
}

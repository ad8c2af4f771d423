package powershell

import (
	"slices"
	"strings"
)

// Values of a script are nil, bool, int64, float64, string, []any, *Object, *Table and *Block.

// Object is a value with properties, in an order.
type Object struct {
	// Type names what it is: "MSFT_NetQosPolicySettingData". Objects of one type that follow each other are shown in one table.
	Type string
	// Show are the properties that are shown if nothing is said; empty: all. As a list if List, or if there are more than four.
	Show       []string
	List       bool
	properties []Property
	text       string    // how it stands in a string; empty: by its properties
	failure    *RunError // of which it is the record
	call       *Call     // whose $PSCmdlet it is
	class      *class    // of the script; nil: none
}

// Property is a property of an object.
type Property struct {
	Name  string
	Value any
}

// NewObject returns an object of a type without properties.
func NewObject(kind string, show ...string) *Object { return &Object{Type: kind, Show: show} }

// With adds a property, or changes one, and returns the object.
func (o *Object) With(name string, value any) *Object {
	if i := o.find(name); i >= 0 {
		o.properties[i].Value = value
		return o
	}
	o.properties = append(o.properties, Property{name, value})
	return o
}

func (o *Object) find(name string) int {
	return slices.IndexFunc(o.properties, func(p Property) bool { return strings.EqualFold(p.Name, name) })
}

// Get returns a property by its name in any letter case.
func (o *Object) Get(name string) (any, bool) {
	if i := o.find(name); i >= 0 {
		return o.properties[i].Value, true
	}
	return nil, false
}

// Properties returns the properties in their order. They belong to the object.
func (o *Object) Properties() []Property { return o.properties }

// Table is a hash table. Its keys are text in any letter case, in the order in which they came.
type Table struct{ Object }

// Block is a block of statements, which commands run for each of their inputs.
type Block struct{ code *code }

// clone returns an object with the same properties.
func (o *Object) clone() *Object {
	c := *o
	c.properties = slices.Clone(o.properties)
	return &c
}

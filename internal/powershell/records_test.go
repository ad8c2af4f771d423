package powershell

import (
	"bytes"
	"strings"
	"testing"
)

// TestRecords: results and messages are lines of JSON in the order in which they come, of ASCII alone.
func TestRecords(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`Get-Thing two`, `{"record":"output","value":{"Name":"two","Size":2,"Even":true},"type":"Thing","exception":"","category":""}`},
		{`1, "é☃😀"`, `{"record":"output","value":1,"type":"","exception":"","category":""}
{"record":"output","value":"\u00e9\u2603\ud83d\ude00","type":"","exception":"","category":""}`},
		{`Write-Warning look; 2`, `{"record":"warning","value":"look","type":"","exception":"","category":""}
{"record":"output","value":2,"type":"","exception":"","category":""}`},
		{`Set-Thing x -WhatIf`, `{"record":"whatif","value":"Performing the operation \"Set\" on target \"x\".","type":"","exception":"","category":""}`},
		{`Set-Thing x -Verbose`, `{"record":"verbose","value":"Performing the operation \"Set\" on target \"x\".","type":"","exception":"","category":""}
{"record":"output","value":"set x 0 False []","type":"","exception":"","category":""}`},
		{`Set-Thing bad`, `{"record":"error","value":"no such thing","type":"","exception":"Microsoft.Management.Infrastructure.CimException","category":"NotSpecified"}`},
		{`Set-Thing -Nam`, `{"record":"error","value":"parameter -Name has no value; allowed: string","type":"","exception":` +
			`"System.Management.Automation.ParameterBindingException","category":"InvalidArgument"}`},
		{`@{A = 1}`, `{"record":"output","value":{"A":1},"type":"","exception":"","category":""}`},
	} {
		s, err := Parse(c.source)
		if err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		in := New(Config{Host: &desk{}, Out: &out, Err: &said, Records: true})
		if err := in.Run(t.Context(), s); err != nil {
			t.Errorf("%s: %v", c.source, err)
		}
		if got := strings.TrimSpace(out.String()); got != c.want || said.Len() > 0 {
			t.Errorf("%s: %s\nand %q, want\n%s", c.source, got, said.String(), c.want)
		}
	}
}

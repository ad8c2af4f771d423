package powershell

import (
	"errors"
	"strings"
	"testing"
)

const point = `class Point {
  [int]$X
  [int]$Y = 5
  hidden [string]$Secret = 's'
  static [int]$Made = 0
  Point() { [Point]::Made++ }
  Point([int]$x, [int]$y) {
    $this.X = $x
    $this.Y = $y
    [Point]::Made += 1
  }
  [int] Sum() { 'dropped'; return $this.X + $this.Y }
  [Point] Plus([Point]$p) { return [Point]::new($this.X + $p.X, $this.Y + $p.Y) }
  [Point] Plus([int]$n, [int]$m) { return [Point]::new($this.X + $n, $this.Y + $m) }
  [void] Move([int]$by) { $this.X += $by }
  static [Point] Origin() { return [Point]::new(0, 0) }
  [string] ToString() { return "($($this.X), $($this.Y))" }
}
`

const animals = `class Animal {
  [string]$Name
  Animal([string]$n) { $this.Name = $n }
  [string] Says() { return 'nothing' }
  [string] All() { return "$($this.Name) says $($this.Says())" }
}
class Dog : Animal {
  [int]$Age
  Dog([string]$n, [int]$a) : base($n) { $this.Age = $a }
  [string] Says() { return 'woof, not ' + ([Animal]$this).Says() }
}
`

const colours = "enum Colour {\n  Red\n  Green = 5\n  Blue\n}\n"

// TestClasses: what classes and enumerations do (about_Classes, about_Enum).
func TestClasses(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"properties and defaults", point + "$p = [Point]::new(); $p.X; $p.Y; $p.Secret", "0\n5\ns\n"},
		{"a constructor with arguments", point + "$p = [Point]::new(3, '4'); $p.X + $p.Y", "7\n"},
		{"methods return by return alone", point + "[Point]::new(3, 4).Sum()", "7\n"},
		{"overloads", point + "$p = [Point]::new(1, 2); \"$($p.Plus($p)) $($p.Plus(10, 20))\"", "(2, 4) (11, 22)\n"},
		{"void", point + "$p = [Point]::new(); $p.Move(3); $p.Move(4); $p.X", "7\n"},
		{"static", point + "$a = [Point]::Origin(); $b = [Point]::new(); [Point]::Made; [Point]::Made = 9; [point]::made", "2\n9\n"},
		{"types of properties", point + "$p = [Point]::new(); $p.X = '12'; $p.X + 1; try { $p.X = 'a' } catch { 'no' }", "13\nno\n"},
		{"a hash table becomes one", point + "([Point]@{X = 1; Y = 2}).Sum()", "3\n"},
		{"types of variables and parameters", point + "function f([Point]$p) { $p.X }; f @{X = 5}; [Point]$q = @{X = 6}; $q.X", "5\n6\n"},
		{"a list of them", point + "[Point[]]$l = @{X = 1}, @{X = 2}; ($l | measure X -Sum).Sum", "3\n"},
		{"hidden is not shown", point + "[Point]::new(1, 2) | ConvertTo-Json -Compress | Out-Null; [Point]::new(1, 2)", "\nX Y\n- -\n1 2\n\n"},
		{"its type", point + "$p = [Point]::new(); $p.GetType().Name; $p -is [Point]; $p -is [string]; 5 -is [Point]", "Point\nTrue\nFalse\nFalse\n"},
		{"used before it stands", "$p = [Late]::new(); $p.X\nclass Late { [int]$X = 3 }", "3\n"},
		{"variables of the script", "$n = 5; class A { [int] Get() { return $script:n } }; [A]::new().Get()", "5\n"},
		{"not those of who calls", "class A { [string] Get() { return \"<$inner>\" } }; function f { $inner = 1; [A]::new().Get() }; f", "<>\n"},
		{"return in a block is the block's", "class A { [int] F() { 1 | ForEach-Object { return 9 }; return 2 } }; [A]::new().F()", "2\n"},
		{"return in a loop", "class A { [int] F() { foreach ($i in 1..9) { if ($i -eq 4) { return $i } }; return 0 } }; [A]::new().F()", "4\n"},
		{"a method without return", "class A { [string] F() { $x = 1 } }; \"<$([A]::new().F())>\"", "<>\n"},
		{"a method returns a list", "class A { [int[]] F() { return 1, 2, 3 } }; [A]::new().F().Count", "3\n"},
		{"objects in properties", "class N { [int]$V; [N]$Next }; $a = [N]@{V = 1}; $a.Next = [N]@{V = 2}; $a.Next.V; $null -eq $a.Next.Next", "2\nTrue\n"},
		{"methods throw", "class A { [void] F() { throw 'x' } }; try { [A]::new().F() } catch { \"$_\" }", "x\n"},
		{"validation", "class A { [ValidateRange(1, 9)][int]$N = 5 }; $a = [A]::new(); try { $a.N = 10 } catch { 'no' }; $a.N", "no\n5\n"},
		{"inheritance", animals + "$d = [Dog]::new('Rex', 3); $d.All(); $d.Age; $d -is [Animal]", "Rex says woof, not nothing\n3\nTrue\n"},
		{"where its base class is wanted", animals + "function f([Animal]$a) { $a.Name }; f ([Dog]::new('Rex', 3))", "Rex\n"},
		{"a base class without constructor", "class A { [int]$X = 1 }; class B : A { [int]$Y = 2 }; $b = [B]::new(); $b.X + $b.Y", "3\n"},
		{"members of one line", "class A { [int]$X = 1; [int] F() { return 2 }; $Z = 'z' }; $a = [A]::new(); $a.X + $a.F(); $a.Z", "3\nz\n"},
		{"elements and pipes", point + "[Point]::new(1, 2), [Point]::new(3, 4) | Where-Object X -gt 1 | ForEach-Object { $_.Sum() }", "7\n"},
		{"enumerations", colours + "[Colour]::Green; \"$([Colour]::Blue)\"; [int][Colour]::Blue; [Colour]'red'; [Colour]5; [Colour]6 -eq 'blue'", "Green\nBlue\n6\nRed\nGreen\nTrue\n"},
		{"enumerations compare", colours + "[Colour]::Red -lt [Colour]::Green; [Colour]::Blue -gt 'Green'; [Colour]::Green -eq 5; 'Green' -eq [Colour]::Green; [Colour]::Red -ne [Colour]::Red", "True\nTrue\nTrue\nTrue\nFalse\n"},
		{"an enumeration as a type", colours + "class A { [Colour]$C }; $a = [A]::new(); $a.C; $a.C = 'blue'; $a.C; function f([Colour]$c) { [int]$c }; f Green", "Red\nBlue\n5\n"},
		{"switch on one", colours + "switch ([Colour]::Green) { 'Red' { 'r' } 'Green' { 'g' } }", "g\n"},
		{"JSON", colours + "class A { [Colour]$C = 'Blue'; [int]$N }; [A]::new() | ConvertTo-Json -Compress", `{"C":6,"N":0}` + "\n"},
		{"a command named class in a word", "Set-Thing class", "set class 0 False []\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, said, err := play(t, &desk{}, c.script, Limits{})
			if err != nil || out != c.want {
				t.Errorf("%s\nprints %q, want %q\nsays %s\n%v", c.script, out, c.want, said, err)
			}
		})
	}
}

// TestClasses_Wrong: what is wrong about a class, or asked of one, is said.
func TestClasses_Wrong(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"class { }", "a class wants a name here, not '{'"},
		{"class A 5", "class wants '{' here"},
		{"class A { 5 }", "class A wants a property ($Name) or a method (Name()) here"},
		{"class A { [int]$X", "a property should end here, not go on with the end of the script"},
		{"class A { $X; $x }", "property $x stands twice"},
		{"class A { [foo]$X }", "type [foo] is not in the part of PowerShell that is understood; allowed: string"},
		{"class A { [void]$X }", "a property cannot be [void]"},
		{"class A { F($x = 5) { } }", "parameters of methods have neither defaults"},
		{"class A { F() : base(5) { } }", "only a constructor goes on with a colon"},
		{"class A : None { }", "there is no class none in the script"},
		{"class A : B { }; class B : A { }", "is made from itself"},
		{"class A { }; class a { }", "there is a type [a]"},
		{"class Int { }", "there is a type [Int]"},
		{"enum E { }", "enum E has no values"},
		{"enum E { A; a }", "a stands twice"},
		{"enum E { A = 'x' }", "A wants a whole number"},
		{"enum E { A }; [E]::B", "[E] has no value B; allowed: A"},
		{"enum E { A }; [E]'B'", `"B" is no value of [E]; allowed: A`},
		{"enum E { A }; [E]::new()", "[E] is an enumeration; allowed: A"},
		{"class A { }; [A]::new(5)", "[A] has no constructor of 1 arguments"},
		{"class A { A([int]$x) { } }; [A]::new('x')", "[A] has no constructor of 1 arguments of these types"},
		{"class A { F() { } }; [A]::new().F(1)", "no method F of [A] takes 1 arguments of these types"},
		{"class A { F() { } }; [A]::new().G()", "has no method G"},
		{"class A { F() { } }; [A]::F()", "[A] has no method F"},
		{"class A { }; [A]::X", "[A] has no static property X"},
		{"class A { }; $a = [A]::new(); $a.X = 5", `[A] has no property "X" that can be set`},
		{"class A { [int]$X }; [A]@{Y = 1}", `[A] has no property "Y" that can be set`},
		{"class A { [ValidateSet('a')]$X = 'b' }; [A]::new()", `parameter $X is "b"; allowed: a`},
		{"class A { A($x) { } }; class B : A { }; [B]::new()", "[A] has no constructor of 0 arguments"},
		{"[math]::PI = 3", "[math] has no property that can be set"},
	} {
		_, said, err := play(t, &desk{}, c.script, Limits{})
		if err == nil || !strings.Contains(said+err.Error(), c.want) {
			t.Errorf("%s: says %q, %v; want %q", c.script, said, err, c.want)
		}
	}
}

// TestClasses_Limits: classes cost no more than a script may.
func TestClasses_Limits(t *testing.T) {
	for _, script := range []string{"class A { F() { $this.F() } }; [A]::new().F()", "class A { [A]$X = [A]::new() }; [A]::new()",
		"class A { A() { [A]::new() } }; [A]::new()", "class A { [string] ToString() { return \"$this\" } }; \"$([A]::new())\"",
		"class A { static [int]$N = [A]::F(); static [int] F() { return [A]::F() } }; [A]::N",
		"class A { F() { } }; $a = [A]::new(); while (1) { $a.F() }", "class A { [string]$S }; $l = @(); while (1) { $l += [A]::new() }"} {
		_, _, err := play(t, &desk{}, script, Limits{Steps: 100000, Memory: 8 << 20})
		var limit *LimitError
		if !errors.As(err, &limit) {
			t.Errorf("%s: %v", script, err)
		}
	}
	for _, script := range []string{strings.Repeat("class A { }\n", 2), "class A {" + strings.Repeat("F() { }\n", 300) + "}"} {
		if _, err := Parse(script); err == nil {
			t.Errorf("%.20s... is taken", script)
		}
	}
}

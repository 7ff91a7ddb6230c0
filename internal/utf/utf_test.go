package utf

import "testing"

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		mark     Mark
	}{
		{"plain", "plain", None},
		{"\xef\xbb\xbfmarked", "marked", UTF8},
		{string(Encode16("Standardgateway für 以太网 😀")), "Standardgateway für 以太网 😀", UTF16},
		{"\xfe\xff\x00a\x00b", "ab", UTF16},
		{"\xff\xfea\x00b", "a", UTF16},
		{"", "", None},
	} {
		if got, mark := Decode([]byte(tt.in)); got != tt.want || mark != tt.mark {
			t.Errorf("%q: %q %q, want %q %q", tt.in, got, mark, tt.want, tt.mark)
		}
	}
}

package inject

// Followed reports whether the last frame went along a path that was kept.
func Followed(j *Injector) bool { return j.followed }

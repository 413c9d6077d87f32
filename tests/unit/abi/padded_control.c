// A struct with a gap. The compiler must refuse it, or -Wpadded does not do what the header tests take it to do.
struct padded {
  int narrow;
  double wide;
};
_Static_assert(sizeof(struct padded) == 16, "");

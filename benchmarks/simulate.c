/* The engine's rival: an and-inverter graph on words of bits, the plain way: a row for each wire, all
   gates in order. Literals are 2 * wire + inverted; wire 0 is the constant 0, then come the inputs. */
#include <stdint.h>

void simulate(const int64_t *left, const int64_t *right, int64_t inputs, int64_t gates,
              uint64_t *restrict rows, int64_t words) {
    for (int64_t i = 0; i < gates; i++) {
        const uint64_t *a = rows + (left[i] >> 1) * words, *b = rows + (right[i] >> 1) * words;
        const uint64_t p = -(uint64_t)(left[i] & 1), q = -(uint64_t)(right[i] & 1);
        uint64_t *out = rows + (1 + inputs + i) * words;
        for (int64_t w = 0; w < words; w++) out[w] = (a[w] ^ p) & (b[w] ^ q);
    }
}

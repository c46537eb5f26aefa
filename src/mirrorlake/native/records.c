/* The loops over records that are too many for Python: messages of librdkafka to Arrow's columns, and back.
 *
 * Knows librdkafka's public interface (rdkafka.h) and Arrow's layout of columns, and nothing of mirrorlake. It calls
 * no library by itself: the functions of librdkafka come in a table that Python fills (library.py), from the library
 * that the wheel of confluent-kafka brings. Compiled by hatch_build.py for every platform when a wheel is built.
 * Nothing here allocates; all memory is Python's, which computes its size from what `survey` counts.
 */
#include <stddef.h>
#include <stdint.h>

/* ---- librdkafka's public types, as rdkafka.h has them since 1.6; library.py checks them at start ---- */

typedef struct rd_kafka_message_s {
    int err;
    void *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *_private;
} message;

enum { VT_RKT = 2, VT_PARTITION = 3, VT_VALUE = 4, VT_KEY = 5, VT_OPAQUE = 6, VT_TIMESTAMP = 8, VT_HEADERS = 10 };
enum { ERR_PARTITION_EOF = -191, ERR_NOENT = -156 };

typedef struct rd_kafka_vu_s {
    int vtype;
    union {
        void *pointer;
        int32_t i32;
        int64_t i64;
        struct { const void *data; size_t size; } memory;
        char padding[64];
    } u;
} vu;

/* The functions of librdkafka that are called for each record. */
typedef struct {
    const char *(*topic_name)(const void *rkt);
    int64_t (*timestamp)(const message *m, int *type);
    int (*headers)(const message *m, void **headers);
    int (*header)(const void *headers, size_t index, const char **name, const void **value, size_t *size);
    void (*destroy)(message *m);
    void *(*produce)(void *rk, const vu *values, size_t count);
    void *(*headers_new)(size_t count);
    int (*header_add)(void *headers, const char *name, ptrdiff_t name_size, const void *value, ptrdiff_t size);
    void (*headers_destroy)(void *headers);
} api;

static void copy(uint8_t *to, const void *from, size_t size) { __builtin_memcpy(to, from, size); }

static size_t length(const char *text) {
    size_t size = 0;
    while (text[size]) size++;
    return size;
}

static int same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

/* ---- reading ---- */

/* What records need room for: how many they are, and the bytes and headers of their columns. */
typedef struct { int64_t count, key_bytes, value_bytes, headers, name_bytes, header_bytes; } sums;

/* A partition that is being read, and what the messages at hand hold of it. numpy sees the same 64-bit numbers. */
typedef struct {
    const char *topic;
    const void *rkt;      /* librdkafka's handle of the topic; null until a message has named it */
    int64_t partition;
    int64_t next;         /* everything below was taken, or is no record */
    int64_t end;          /* behind the last offset that is wanted */
    int64_t log_end;      /* where the log ended when that was last told; -1 before, or FORGOTTEN */
    int64_t error;        /* the first error of the partition; 0 for none */
    sums of;              /* these messages */
} range;

/* The ranges, and where each of them is found: `slots` has their numbers, or -1, by open addressing with a hash of
 * topic and partition. `mask` is the number of slots, a power of two, less one; at least half of them are -1. */
typedef struct {
    range *ranges;
    int32_t *slots;
    int64_t mask;
} table;

/* What becomes of a message, beside the number of its range. BARE is added to that for a record without headers: for
 * such a one librdkafka parses each time that it is asked for them, which took 4 % of a mirror's CPU at 120 B. */
enum { DROPPED = -1, LATER = -2, BARE = 1 << 30 };
enum { FORGOTTEN = -2 };

/* FNV-1a. */
static uint64_t slot_of(const table *t, const char *topic, int64_t partition) {
    uint64_t hash = 14695981039346656037u ^ (uint64_t)partition;
    for (; *topic; topic++) hash = (hash ^ (uint8_t)*topic) * 1099511628211u;
    return (hash ^ hash >> 32) & (uint64_t)t->mask;
}

/* Let ranges be found, by their numbers. */
void enter(const table *t, const int32_t *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const range *r = &t->ranges[numbers[i]];
        uint64_t at = slot_of(t, r->topic, r->partition);
        while (t->slots[at] >= 0) at = (at + 1) & (uint64_t)t->mask;
        t->slots[at] = numbers[i];
    }
}

/* A slot may be out of date: its range is then another partition, or none. */
static range *range_of(const api *lib, const message *m, const table *t, range *last) {
    if (!m->rkt) return NULL; /* about no partition, though it names the number 0 */
    if (last && last->rkt == m->rkt && last->partition == m->partition) return last;
    const char *topic = lib->topic_name(m->rkt);
    uint64_t at = slot_of(t, topic, m->partition);
    for (; t->slots[at] >= 0; at = (at + 1) & (uint64_t)t->mask) {
        range *r = &t->ranges[t->slots[at]];
        if (r->partition != m->partition) continue;
        if (r->rkt == m->rkt) return r;
        if (!r->rkt && same(topic, r->topic)) {
            r->rkt = m->rkt;
            return r;
        }
    }
    return NULL;
}

/* The length of a header's name. There may be zeros in it, and librdkafka tells no length: but it puts a value that is
 * not null right behind the zero that ends the name (rdkafka_header.c; selfcheck.py tries whether it does). */
static size_t name_length(const char *name, const void *value) {
    return value ? (size_t)((const char *)value - name) - 1 : length(name);
}

/* Count what the headers of a record need. Returns why they cannot be read, ERR_NOENT where there are none, or 0. */
static int measure_headers(const api *lib, const message *m, sums *needs) {
    void *headers;
    const char *name;
    const void *value;
    size_t size;
    int error = lib->headers(m, &headers);
    if (error) return error;
    for (size_t i = 0; !lib->header(headers, i, &name, &value, &size); i++) {
        needs->headers++;
        needs->name_bytes += name_length(name, value);
        needs->header_bytes += value ? size : 0;
    }
    return 0;
}

static void add(sums *to, const sums *more) {
    to->count += more->count;
    to->key_bytes += more->key_bytes;
    to->value_bytes += more->value_bytes;
    to->headers += more->headers;
    to->name_bytes += more->name_bytes;
    to->header_bytes += more->header_bytes;
}

/* What a call of `survey` has come to: the sums of all records; how many ranges have some, or an error; and the first
 * error that is about no partition, or 0. No column may hold more than `most`. */
typedef struct {
    int64_t most;
    sums all;
    int64_t touched, error;
} surveyed;

static int fits(const surveyed *at, const sums *more) {
    return at->all.key_bytes + more->key_bytes <= at->most && at->all.value_bytes + more->value_bytes <= at->most &&
           at->all.headers + more->headers <= at->most && at->all.name_bytes + more->name_bytes <= at->most &&
           at->all.header_bytes + more->header_bytes <= at->most;
}

/* Sort messages by the range they belong to, move the ranges forward, and count what `fill` will need room for.
 *
 * `places` gets for each message the number of its range (and BARE), DROPPED (an event, or a record below the range's
 * start), or LATER (a record behind the range's end). A range is over when its `next` has come to its `end`: by the
 * record in front, by one at or behind the end, or by the end of the log, wherever aborted records and markers fill the
 * rest. Behind an error of a range nothing more of it is taken: there would be a hole. `touched` gets the numbers of
 * the ranges that have records, or an error; what is counted of a range has to be 0 before. Returns how many messages
 * were looked at: all, or those in front of the first one with which a column would hold too much.
 */
int64_t survey(const api *lib, message **messages, int64_t count, const table *t, int32_t *places, int32_t *touched,
               surveyed *out) {
    range *r = NULL;
    for (int64_t i = 0; i < count; i++) {
        const message *m = messages[i];
        places[i] = DROPPED;
        r = range_of(lib, m, t, r);
        if (!r) {
            if (m->err && !out->error) out->error = m->err;
            continue;
        }
        if (r->error) continue;
        int32_t number = (int32_t)(r - t->ranges);
        int is_touched = r->of.count > 0;
        if (m->err == ERR_PARTITION_EOF) {
            r->log_end = m->offset;
            if (m->offset >= r->end && r->next < r->end) r->next = r->end;
        } else if (m->err) {
            r->error = m->err;
            if (!is_touched) touched[out->touched++] = number;
        } else if (m->offset >= r->end) {
            if (r->next < r->end) r->next = r->end;
            places[i] = LATER;
        } else if (m->offset >= r->next) {
            sums needs = {.count = 1, .key_bytes = m->key ? (int64_t)m->key_len : 0,
                          .value_bytes = m->payload ? (int64_t)m->len : 0};
            int headers = measure_headers(lib, m, &needs);
            int is_read = !headers || headers == ERR_NOENT;
            if (is_read && !fits(out, &needs)) return i;
            if (!is_touched) touched[out->touched++] = number;
            if (!is_read) {
                r->error = headers;
                continue;
            }
            r->next = m->offset + 1;
            places[i] = number | (headers ? BARE : 0);
            add(&r->of, &needs);
            add(&out->all, &needs);
        }
    }
    return count;
}

/* Columns to be filled, in Arrow's layout: `*_ends` has one number more than there are rows, bitmaps begin as zeros. */
typedef struct {
    int32_t *partition;
    int64_t *offset, *timestamp;
    int32_t *timestamp_type;
    int32_t *key_ends, *value_ends, *header_ends, *name_ends, *header_value_ends;
    uint8_t *keys, *values, *names, *header_values;
    uint8_t *has_key, *has_value, *has_headers, *has_header_value;
    int64_t keyless, valueless, headerless, header_valueless; /* counts of nulls, counted here */
} columns;

/* Where the next row of a range goes. */
typedef struct { int64_t row, key, value, header, name, header_value; } cursor;

static void set(uint8_t *bitmap, int64_t index) { bitmap[index >> 3] |= (uint8_t)(1 << (index & 7)); }

static void fill_headers(const api *lib, const message *m, int bare, columns *out, cursor *at) {
    void *headers;
    const char *name;
    const void *value;
    size_t size;
    int64_t first = at->header;
    if (!bare && !lib->headers(m, &headers)) {
        for (size_t i = 0; !lib->header(headers, i, &name, &value, &size); i++) {
            size_t name_size = name_length(name, value);
            copy(out->names + at->name, name, name_size);
            at->name += name_size;
            if (value) {
                copy(out->header_values + at->header_value, value, size);
                at->header_value += size;
                set(out->has_header_value, at->header);
            } else {
                out->header_valueless++;
            }
            at->header++;
            out->name_ends[at->header] = (int32_t)at->name;
            out->header_value_ends[at->header] = (int32_t)at->header_value;
        }
    }
    if (at->header > first) set(out->has_headers, at->row);
    else out->headerless++;
    out->header_ends[at->row + 1] = (int32_t)at->header;
}

/* Copy records into columns, those of a range together, the ranges in the order in which they were `touched`;
 * `cursors` is room for one of each range.
 * Gives back to librdkafka what is taken or dropped, if `release`. The messages that are left for LATER move to the
 * front of `messages`; returns their number. */
int64_t fill(const api *lib, message **messages, int64_t count, const int32_t *places, const table *t,
             const int32_t *touched, int64_t touched_count, cursor *cursors, columns *out, int64_t release) {
    cursor at = {0};
    for (int64_t i = 0; i < touched_count; i++) {
        const sums *of = &t->ranges[touched[i]].of;
        cursors[touched[i]] = at;
        at.row += of->count;
        at.key += of->key_bytes;
        at.value += of->value_bytes;
        at.header += of->headers;
        at.name += of->name_bytes;
        at.header_value += of->header_bytes;
    }
    out->key_ends[0] = out->value_ends[0] = out->header_ends[0] = out->name_ends[0] = out->header_value_ends[0] = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        message *m = messages[i];
        if (places[i] == LATER) {
            messages[kept++] = m;
            continue;
        }
        if (places[i] >= 0) {
            cursor *c = &cursors[places[i] & ~BARE];
            int64_t row = c->row;
            int type = 0;
            out->partition[row] = m->partition;
            out->offset[row] = m->offset;
            int64_t ms = lib->timestamp(m, &type);
            out->timestamp[row] = type ? ms : -1; /* librdkafka says 0 where there is none, Kafka -1 */
            out->timestamp_type[row] = type - 1; /* Kafka's own numbers: -1 none, 0 CreateTime, 1 LogAppendTime */
            if (m->key) {
                copy(out->keys + c->key, m->key, m->key_len);
                c->key += m->key_len;
                set(out->has_key, row);
            } else {
                out->keyless++;
            }
            if (m->payload) {
                copy(out->values + c->value, m->payload, m->len);
                c->value += m->len;
                set(out->has_value, row);
            } else {
                out->valueless++;
            }
            out->key_ends[row + 1] = (int32_t)c->key;
            out->value_ends[row + 1] = (int32_t)c->value;
            fill_headers(lib, m, places[i] & BARE, out, c);
            c->row++;
        }
        if (release) lib->destroy(m);
    }
    return kept;
}

/* Give messages back to librdkafka: all, or of those of a table the ones whose range is FORGOTTEN. Returns how many are
 * left, which move to the front. */
int64_t give_back(const api *lib, message **messages, int64_t count, const table *t) {
    int64_t kept = 0;
    range *r = NULL;
    for (int64_t i = 0; i < count; i++) {
        message *m = messages[i];
        if (t) r = range_of(lib, m, t, r);
        if (t && !(r && r->log_end == FORGOTTEN)) messages[kept++] = m;
        else lib->destroy(m);
    }
    return kept;
}

/* ---- producing ---- */

/* A binary column. `ends` begins at the first row; `valid` is null where no row is, and begins `shift` bits earlier. */
typedef struct {
    const int32_t *ends;
    const uint8_t *data, *valid;
    int64_t shift;
} binary;

/* Rows of one partition. Headers are null where no row has any; `ends` of names and header values begin at the first
 * header of the column, which `header_ends` counts from. */
typedef struct {
    int64_t count;
    const int64_t *timestamp;
    binary key, value;
    const int32_t *header_ends; /* null: no headers at all */
    const uint8_t *has_headers;
    int64_t headers_shift;
    binary name, header_value;
    const char *added_name;     /* a header that each record gets, or null */
    const uint8_t *added_value;
    int64_t added_size;
    const char *removed_name;   /* headers of this name are left out, or null */
} rows;

static int is_valid(const uint8_t *bitmap, int64_t index) { return !bitmap || bitmap[index >> 3] >> (index & 7) & 1; }

static const void *at(const binary *column, int64_t row, size_t *size) {
    if (!is_valid(column->valid, row + column->shift)) return *size = 0, NULL;
    *size = (size_t)(column->ends[row + 1] - column->ends[row]);
    /* Not null, though nothing is read there: a column of empty texts may have no bytes at all. */
    return column->data ? column->data + column->ends[row] : (const uint8_t *)"";
}

/* The headers of a row as librdkafka has them, or null if there are none. */
static void *headers_of(const api *lib, const rows *from, int64_t row) {
    int64_t first = 0, end = 0;
    if (from->header_ends && is_valid(from->has_headers, row + from->headers_shift)) {
        first = from->header_ends[row];
        end = from->header_ends[row + 1];
    }
    size_t removed = from->removed_name ? length(from->removed_name) : 0, count = 0;
    if (first == end && !from->added_name) return NULL;
    void *headers = lib->headers_new((size_t)(end - first) + 1);
    for (int64_t i = first; i < end; i++) {
        size_t name_size, size;
        const char *name = at(&from->name, i, &name_size);
        const void *value = at(&from->header_value, i, &size);
        int leave = from->removed_name && name_size == removed;
        for (size_t k = 0; leave && k < removed; k++) leave = name[k] == from->removed_name[k];
        if (leave) continue;
        lib->header_add(headers, name, (ptrdiff_t)name_size, value, (ptrdiff_t)size);
        count++;
    }
    if (from->added_name) {
        lib->header_add(headers, from->added_name, -1, from->added_value, (ptrdiff_t)from->added_size);
        count++;
    }
    if (count) return headers;
    lib->headers_destroy(headers);
    return NULL;
}

/* Hand rows to a producer, beginning with row `start`. The values are not copied: they and `slots` have to stay until
 * each record was acknowledged. Returns the first row that was not taken, with librdkafka's error, to be destroyed, or
 * `count`. */
int64_t send(const api *lib, void *rk, void *rkt, int32_t partition, const rows *from, int64_t start, int64_t *slots,
             void **error) {
    vu v[7] = {{.vtype = VT_RKT}, {.vtype = VT_PARTITION}, {.vtype = VT_VALUE}, {.vtype = VT_KEY},
               {.vtype = VT_TIMESTAMP}, {.vtype = VT_OPAQUE}, {.vtype = VT_HEADERS}};
    v[0].u.pointer = rkt;
    v[1].u.i32 = partition;
    *error = NULL;
    for (int64_t row = start; row < from->count; row++) {
        v[2].u.memory.data = at(&from->value, row, &v[2].u.memory.size);
        v[3].u.memory.data = at(&from->key, row, &v[3].u.memory.size);
        v[4].u.i64 = from->timestamp[row];
        v[5].u.pointer = &slots[row];
        v[6].u.pointer = headers_of(lib, from, row);
        *error = lib->produce(rk, v, v[6].u.pointer ? 7 : 6);
        if (*error) {
            if (v[6].u.pointer) lib->headers_destroy(v[6].u.pointer);
            return row;
        }
    }
    return from->count;
}

/* A slot holds an offset once its record was acknowledged; before, PENDING; an error's code below REFUSED. */
enum { REFUSED = -1000000 };

/* librdkafka's delivery report callback. */
void delivered(void *rk, const message *m, void *opaque) {
    (void)rk, (void)opaque;
    int64_t *slot = m->_private;
    if (slot) *slot = m->err ? REFUSED + m->err : m->offset;
}

/* ---- what a cluster answers about its topics ---- */

/* The functions of librdkafka that are called for each config. */
typedef struct {
    const void **(*configs)(const void *resource, size_t *count);
    const char *(*name)(const void *config);
    const char *(*value)(const void *config);
    int (*source)(const void *config);
    int (*is_default)(const void *config);
    int (*is_read_only)(const void *config);
    int (*is_sensitive)(const void *config);
} config_api;

enum { NO_VALUE = 1, IS_DEFAULT = 2, IS_READ_ONLY = 4, IS_SENSITIVE = 8, TEXT = 64 };

static int64_t put(uint8_t *out, int64_t room, int64_t at, const char *text) {
    int64_t size = (int64_t)length(text) + 1;
    if (at + size <= room) copy(out + at, text, (size_t)size);
    return at + size;
}

/* The configs of one resource, one after another: where it comes from, TEXT and what holds of it, its name, a zero,
 * its value, a zero. Returns how many bytes these are; more than there is room for are not written. */
int64_t config_bytes(const config_api *lib, const void *resource, uint8_t *out, int64_t room) {
    size_t count;
    const void **all = lib->configs(resource, &count);
    int64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const char *value = lib->value(all[i]);
        if (end + 2 <= room) {
            out[end] = (uint8_t)(TEXT + lib->source(all[i]));
            out[end + 1] = (uint8_t)(TEXT + (value ? 0 : NO_VALUE) + (lib->is_default(all[i]) ? IS_DEFAULT : 0)
                                     + (lib->is_read_only(all[i]) ? IS_READ_ONLY : 0)
                                     + (lib->is_sensitive(all[i]) ? IS_SENSITIVE : 0));
        }
        end = put(out, room, put(out, room, end + 2, lib->name(all[i])), value ? value : "");
    }
    return end;
}

/* librdkafka's lists of brokers, topics and partitions, as rdkafka.h has them since 0.9. */
typedef struct { int32_t id; char *host; int port; } broker;
typedef struct { int32_t id; int err; int32_t leader; int replica_count; int32_t *replicas; int isr_count; int32_t *isrs; }
    partition_metadata;
typedef struct { char *name; int partition_count; partition_metadata *partitions; int err; } topic_metadata;
typedef struct { int broker_count; broker *brokers; int topic_count; topic_metadata *topics; int32_t from; char *from_name; }
    metadata;

static int64_t put_number(uint8_t *out, int64_t room, int64_t at, int32_t number) {
    if (at + 4 <= room) copy(out + at, &number, 4);
    return at + 4;
}

/* What metadata says, but for replicas in sync: how many brokers, their ids and ports; how many topics, and of each its
 * error and how many partitions, and of each of these its id, its leader, how many replicas, and on which brokers. Behind
 * these numbers the names of brokers and topics, each with a zero, `names_from` where they begin. Returns how many bytes
 * these are; more than there is room for are not written. */
int64_t metadata_bytes(const metadata *from, uint8_t *out, int64_t room, int64_t *names_from) {
    int64_t end = put_number(out, room, 0, from->broker_count);
    for (int i = 0; i < from->broker_count; i++)
        end = put_number(out, room, put_number(out, room, end, from->brokers[i].id), from->brokers[i].port);
    end = put_number(out, room, end, from->topic_count);
    for (int i = 0; i < from->topic_count; i++) {
        const topic_metadata *topic = &from->topics[i];
        end = put_number(out, room, put_number(out, room, end, topic->err), topic->partition_count);
        for (int p = 0; p < topic->partition_count; p++) {
            const partition_metadata *of = &topic->partitions[p];
            end = put_number(out, room, put_number(out, room, end, of->id), of->leader);
            end = put_number(out, room, end, of->replica_count);
            for (int r = 0; r < of->replica_count; r++) end = put_number(out, room, end, of->replicas[r]);
        }
    }
    *names_from = end;
    for (int i = 0; i < from->broker_count; i++) end = put(out, room, end, from->brokers[i].host);
    for (int i = 0; i < from->topic_count; i++) end = put(out, room, end, from->topics[i].name);
    return end;
}

/* librdkafka's rd_kafka_topic_partition_t. */
typedef struct {
    char *topic;
    int32_t partition;
    int64_t offset;
    void *metadata;
    size_t metadata_size;
    void *opaque;
    int err;
    void *_private;
} place;

/* The functions of librdkafka that are called for each partition whose offsets are asked for. */
typedef struct {
    place *(*add)(void *list, const char *topic, int32_t partition);
    const place *(*answered)(const void *answer);
    int64_t (*timestamp)(const void *answer);
    int32_t (*epoch)(const place *at);
} offset_api;

/* Partitions, and what is answered of each: `error` is set before, and stays where nothing is. */
typedef struct { int64_t offset, timestamp, epoch, error; } told;
typedef struct { const char **topics; const int32_t *partitions; int64_t count; told *told; } asked;

/* Put partitions into a list of librdkafka's, each with what is asked of it. */
void ask_offsets(const offset_api *lib, void *list, const asked *all, int64_t what) {
    for (int64_t i = 0; i < all->count; i++) lib->add(list, all->topics[i], all->partitions[i])->offset = what;
}

/* Take answers, which come in any order. `slots` are as those of a `table`, all of them -1. */
void take_offsets(const offset_api *lib, const void **answers, int64_t count, const asked *all, int32_t *slots,
                  int64_t mask) {
    const table t = {NULL, slots, mask};
    for (int64_t i = 0; i < all->count; i++) {
        uint64_t at = slot_of(&t, all->topics[i], all->partitions[i]);
        while (slots[at] >= 0) at = (at + 1) & (uint64_t)mask;
        slots[at] = (int32_t)i;
    }
    for (int64_t i = 0; i < count; i++) {
        const place *one = lib->answered(answers[i]);
        uint64_t at = slot_of(&t, one->topic, one->partition);
        for (; slots[at] >= 0; at = (at + 1) & (uint64_t)mask) {
            const int32_t number = slots[at];
            if (all->partitions[number] != one->partition || !same(all->topics[number], one->topic)) continue;
            all->told[number] = (told){one->offset, lib->timestamp(answers[i]), lib->epoch(one), one->err};
            break;
        }
    }
}

/* What this was compiled from, which hatch_build.py looks for in the file. */
#ifndef COMPILED_FROM
#define COMPILED_FROM "by hand"
#endif
const char compiled_from[] = COMPILED_FROM;

/* The sizes of what Python mirrors, to be compared at start: range, columns, binary, rows, cursor, api, message, vu,
 * table, surveyed, config_api, metadata, topic_metadata, partition_metadata, broker, place, offset_api, asked. */
void sizes(int64_t *out) {
    const size_t all[] = {sizeof(range), sizeof(columns), sizeof(binary), sizeof(rows),
                          sizeof(cursor), sizeof(api), sizeof(message), sizeof(vu),
                          sizeof(table), sizeof(surveyed), sizeof(config_api), sizeof(metadata),
                          sizeof(topic_metadata), sizeof(partition_metadata), sizeof(broker), sizeof(place),
                          sizeof(offset_api), sizeof(asked)};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) out[i] = (int64_t)all[i];
}

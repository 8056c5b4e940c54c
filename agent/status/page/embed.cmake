# cmake -DFOLDER=... -DOUTPUT=... -P embed.cmake: page.html with page.css, draw.js and page.js in it, as a header of C.
#
# The page is one answer, so that nothing is half there when the agent restarts. Its style and its
# script are named in the Content-Security-Policy by their hashes, made here of the very bytes that
# are served: whatever else gets into the page, be it by a fault of ours, neither styles nor runs.
# page_etag is a hash of it all; the page holds it, too (@ETAG@), and so notices a newer one.
cmake_minimum_required(VERSION 3.25)

set(DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

# base64 of 32 bytes given as 64 hexadecimal digits
function(base64_of_hash hex ret)
	set(text)
	foreach(at RANGE 0 54 6)
		string(SUBSTRING ${hex} ${at} 6 three)
		foreach(shift 18 12 6 0)
			math(EXPR digit "(0x${three} >> ${shift}) & 63")
			string(SUBSTRING ${DIGITS} ${digit} 1 digit)
			string(APPEND text ${digit})
		endforeach()
	endforeach()
	# Two bytes remain: 16 bits, filled up to 18.
	string(SUBSTRING ${hex} 60 4 two)
	foreach(shift 12 6 0)
		math(EXPR digit "((0x${two} << 2) >> ${shift}) & 63")
		string(SUBSTRING ${DIGITS} ${digit} 1 digit)
		string(APPEND text ${digit})
	endforeach()
	set(${ret} "${text}=" PARENT_SCOPE)
endfunction()

file(READ ${FOLDER}/page.html html)
file(READ ${FOLDER}/page.css css)
file(READ ${FOLDER}/draw.js draw)
file(READ ${FOLDER}/page.js js)
string(PREPEND js "${draw}")
string(SHA256 style "${css}")
string(SHA256 script "${js}")
base64_of_hash(${style} style)
base64_of_hash(${script} script)
string(SHA256 etag "${html}${css}${js}")
string(SUBSTRING ${etag} 0 16 etag)
string(REPLACE "@ETAG@" "${etag}" html "${html}")
string(REPLACE "@STYLE@" "${css}" html "${html}")
string(REPLACE "@SCRIPT@" "${js}" html "${html}")

file(WRITE ${OUTPUT}.html "${html}")
file(READ ${OUTPUT}.html bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,){16})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made by embed.cmake of the files in agent/status/page. */
static const unsigned char page_html[] = {
${bytes}
};
#define PAGE_ETAG \"\\\"${etag}\\\"\"
#define PAGE_STYLE_HASH \"sha256-${style}\"
#define PAGE_SCRIPT_HASH \"sha256-${script}\"
")

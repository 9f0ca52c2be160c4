# Sound and pictures: coders and filters with threads of their own; the bytes that come out must be the same.
# Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

film() { echo -f lavfi -i testsrc2=duration=1:size=320x180:rate=25; }
sum_out() { sed 's/ .*//'; }
ffmpeg_x264() {
	# shellcheck disable=SC2046
	run ffmpeg -v error $(film) -c:v libx264 -preset ultrafast -threads 6 -y a.mp4 && run ffmpeg -v error -threads 4 -i a.mp4 -f framemd5 - | md5sum
}
ffmpeg_vp9() {
	# shellcheck disable=SC2046
	run ffmpeg -v error $(film) -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -row-mt 1 -tile-columns 2 -threads 4 -y a.webm && run ffmpeg -v error -i a.webm -f framemd5 - | md5sum
}
ffmpeg_filters() {
	# shellcheck disable=SC2046
	run ffmpeg -v error -filter_threads 4 $(film) -vf scale=640:360,gblur,hflip -c:v ffv1 -level 3 -slices 4 -threads 4 -f framemd5 - | md5sum
}
x265() {
	# shellcheck disable=SC2046
	command ffmpeg -v error $(film) -pix_fmt yuv420p -y a.y4m && run x265 --preset ultrafast --pools 4 --frame-threads 3 -o a.hevc a.y4m 2>out || { cat out; return 1; }
	md5sum a.hevc
}
imagemagick() { OMP_WAIT_POLICY=passive MAGICK_THREAD_LIMIT=4 run convert-im6.q16 -size 300x300 plasma:fractal -seed 1 -blur 0x3 -rotate 30 -resize 500x500 -colors 64 a.png && echo made; }
graphicsmagick() { OMP_NUM_THREADS=4 run gm convert -size 600x400 gradient:red-blue -blur 0x3 -rotate 30 -resize 300x300 ppm:- | md5sum; }
aom() {
	# shellcheck disable=SC2046
	command ffmpeg -v error $(film) -frames:v 8 -pix_fmt yuv420p -y a.y4m && run aomenc --rt --cpu-used=9 --threads=4 --row-mt=1 --tile-columns=1 -o a.ivf a.y4m >out 2>&1 || { tail -5 out; return 1; }
	run aomdec --threads=4 --rawvideo -o - a.ivf | md5sum
}
cwebp() { command ffmpeg -v error -f lavfi -i testsrc2=size=320x180:rate=1 -frames:v 1 -y a.png && run cwebp -quiet -mt -m 6 a.png -o - | md5sum; }

compare ffmpeg-x264 90 "ffmpeg" - "$EVERY"
compare ffmpeg-vp9 90 "ffmpeg" - "$EVERY"
compare ffmpeg-filters 90 "ffmpeg" - "$EVERY"
compare x265 90 "x265 ffmpeg" - "$EVERY"
compare aom 90 "aomenc aomdec ffmpeg" - "$EVERY"
compare cwebp 60 "cwebp ffmpeg" - "$EVERY"
compare imagemagick 60 "convert-im6.q16" - "$EVERY"
compare graphicsmagick 60 "gm" - "$EVERY"

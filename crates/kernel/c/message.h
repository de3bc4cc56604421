/* Where the point walk leaves what digests are made of: elements of a lane in shared memory, beta^j x at j, y and -y
 * behind, where there is a y. */

#define MESSAGE_Y 3
#define MESSAGE_ELEMENTS (POINT_Y ? 5 : 3)
#define MESSAGE_QUADS (2 * MESSAGE_ELEMENTS)
